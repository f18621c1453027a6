//! Cycles of the graph: in each knot of transactions one of the gravest kind there is, and of
//! these a short one.
//!
//! Knots are strongly connected components, found by Tarjan's algorithm without recursion. In a
//! knot the searches of [`Level::searches`] are made one after the other, on ever more edges. So a
//! cycle that one of them finds is of its kind: a lesser one would have been found before.
//!
//! A cycle without adjacent anti-dependencies is one of a graph in which each transaction is two
//! states: entered by an anti-dependency, or not. No anti-dependency leaves the first.

use super::anomaly::KEPT;
use super::graph::{Dependency, Edge, Graph};
use super::level::{Level, Search};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The most edges that are followed in a knot in search of a shorter cycle.
const EFFORT: usize = 1 << 22;

/// A cycle: transactions, each with the edge to the next; the last one's leads to the first.
pub(super) type Cycle = Vec<(u32, Edge)>;

/// The gravest cycles that the level forbids, from knots of the whole graph that do not hold one of
/// `known`, pairs of transactions that are already known to violate it. In those only cycles
/// without anti-dependencies are searched for.
pub(super) fn find(graph: &Graph, level: Level, known: &[(u32, u32)]) -> Vec<Cycle> {
    let searches = level.searches();
    let widest = Walk {
        graph,
        search: searches.iter().max_by_key(|s| s.edges.len()).copied(),
        spaced: false,
    };
    let mut local = vec![u32::MAX; graph.nodes()];
    let mut cycles = Vec::new();
    let mut knots: Vec<Vec<u32>> = widest.knots();
    let mut knot_of = vec![u32::MAX; graph.nodes()];
    for (number, knot) in knots.iter_mut().enumerate() {
        for state in &mut *knot {
            *state /= 2;
            knot_of[*state as usize] = number as u32;
        }
        knot.sort_unstable();
    }
    let mut is_known = vec![false; knots.len()];
    for (a, b) in known {
        let knot = knot_of[*a as usize];
        if knot != u32::MAX && knot == knot_of[*b as usize] {
            is_known[knot as usize] = true;
        }
    }
    for (knot, is_known) in knots.iter().zip(is_known) {
        let part = graph.part(knot, &mut local);
        for search in &searches {
            if is_known && search.edges.contains(&Dependency::Rw) {
                continue;
            }
            let walk = Walk {
                graph: &part,
                search: Some(search),
                spaced: search.spaced,
            };
            let mut knots = walk.knots();
            knots.truncate(KEPT);
            let found: Vec<Cycle> = knots.iter().map(|knot| walk.cycle(knot)).collect();
            if !found.is_empty() {
                cycles.extend(found.into_iter().map(|cycle| {
                    let global = |(node, edge): (u32, Edge)| {
                        let to = knot[edge.to as usize];
                        (knot[node as usize], Edge { to, ..edge })
                    };
                    cycle.into_iter().map(global).collect::<Cycle>()
                }));
                break;
            }
        }
    }
    cycles
}

/// The walks that a search allows. A *state* is twice the number of a node, and one more if an
/// anti-dependency led there and that matters.
struct Walk<'a> {
    graph: &'a Graph,
    search: Option<&'static Search>,
    spaced: bool,
}

impl Walk<'_> {
    /// The state in which an edge leads, if the walk may take it.
    fn step(&self, state: u32, edge: &Edge) -> Option<u32> {
        let allowed = self.search?.edges.contains(&edge.kind);
        let after_anti = state % 2 == 1;
        let is_anti = edge.kind.is_anti();
        let adjacent = after_anti && is_anti && !self.graph.is_relay(state / 2);
        (allowed && !adjacent).then_some(2 * edge.to + u32::from(self.spaced && is_anti))
    }

    /// The strongly connected components, but for those of one state.
    fn knots(&self) -> Vec<Vec<u32>> {
        const NEW: u32 = u32::MAX;
        const DONE: u32 = u32::MAX - 1;
        let states = 2 * self.graph.nodes() as u32;
        let mut numbers = vec![NEW; states as usize];
        let mut lowest = vec![0; states as usize];
        let mut next = 0;
        let mut path: Vec<(u32, usize)> = Vec::new();
        let mut stack: Vec<u32> = Vec::new();
        let mut knots = Vec::new();
        for root in 0..states {
            if numbers[root as usize] != NEW || root % 2 == 1 {
                continue;
            }
            path.push((root, 0));
            while let Some((state, taken)) = path.pop() {
                let at = state as usize;
                if taken == 0 {
                    numbers[at] = next;
                    lowest[at] = next;
                    next += 1;
                    stack.push(state);
                }
                let edges = self.graph.edges(state / 2);
                let mut deeper = None;
                for (n, edge) in edges.iter().enumerate().skip(taken) {
                    let Some(to) = self.step(state, edge) else {
                        continue;
                    };
                    match numbers[to as usize] {
                        NEW => {
                            deeper = Some((n, to));
                            break;
                        }
                        DONE => {}
                        number => lowest[at] = lowest[at].min(number),
                    }
                }
                if let Some((n, to)) = deeper {
                    path.push((state, n + 1));
                    path.push((to, 0));
                    continue;
                }
                if lowest[at] == numbers[at] {
                    let first = stack.iter().rposition(|it| *it == state);
                    let knot = stack.split_off(first.expect("it is on the stack"));
                    for state in &knot {
                        numbers[*state as usize] = DONE;
                    }
                    if knot.len() > 1 {
                        knots.push(knot);
                    }
                }
                if let Some((before, _)) = path.last() {
                    let before = *before as usize;
                    lowest[before] = lowest[before].min(lowest[at]);
                }
            }
        }
        knots
    }

    /// A cycle in a knot: of those with the fewest anti-dependencies one of the shortest, or the
    /// best that was found with some effort.
    fn cycle(&self, knot: &[u32]) -> Cycle {
        const UNSEEN: (u64, u32, usize) = (u64::MAX, 0, 0);
        // For each state the cost to reach it, the state before, and the edge from there.
        let mut reached = vec![UNSEEN; 2 * self.graph.nodes()];
        let mut touched: Vec<u32> = Vec::new();
        let mut best: Option<(u64, Cycle)> = None;
        let mut effort = 0;
        for &start in knot
            .iter()
            .filter(|state| !self.graph.is_relay(**state / 2))
        {
            if best.is_some() && effort > EFFORT {
                break;
            }
            let limit = best.as_ref().map_or(u64::MAX, |(cost, _)| *cost);
            let mut queue = BinaryHeap::from([Reverse((0, start))]);
            let mut closed = None;
            while let Some(Reverse((cost, state))) = queue.pop() {
                if state == start && cost > 0 {
                    closed = Some(cost);
                    break;
                }
                if cost > reached[state as usize].0 {
                    continue;
                }
                for (n, edge) in self.graph.edges(state / 2).iter().enumerate() {
                    effort += 1;
                    let Some(to) = self.step(state, edge) else {
                        continue;
                    };
                    let total = cost + self.cost(state, edge);
                    if total < reached[to as usize].0.min(limit) {
                        reached[to as usize] = (total, state, n);
                        touched.push(to);
                        queue.push(Reverse((total, to)));
                    }
                }
            }
            if let Some(cost) = closed {
                best = Some((cost, self.path_to(start, &reached)));
            }
            for state in touched.drain(..) {
                reached[state as usize] = UNSEEN;
            }
        }
        best.expect("a knot has a cycle").1
    }

    /// Anti-dependencies count most, then edges. What leaves a relay was counted before.
    fn cost(&self, from: u32, edge: &Edge) -> u64 {
        let anti = u64::from(edge.kind.is_anti());
        (anti << 32 | 1) * u64::from(!self.graph.is_relay(from / 2))
    }

    /// The cycle that leads back to `start`, without its relays.
    fn path_to(&self, start: u32, reached: &[(u64, u32, usize)]) -> Cycle {
        let mut cycle = Cycle::new();
        let mut at = start;
        loop {
            let (_, before, edge) = reached[at as usize];
            let mut edge = self.graph.edges(before / 2)[edge];
            at = before;
            if self.graph.is_relay(at / 2) {
                let to = edge.to;
                let (_, before, into) = reached[at as usize];
                edge = Edge {
                    to,
                    ..self.graph.edges(before / 2)[into]
                };
                at = before;
            }
            cycle.push((at / 2, edge));
            if at == start {
                break;
            }
        }
        cycle.reverse();
        cycle
    }
}

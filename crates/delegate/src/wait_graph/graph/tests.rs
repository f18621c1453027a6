//! Compares the graph with a model that looks at all paths.

use crate::wait_graph::graph::*;
use proptest::prelude::*;

const OBJECTS: usize = 4;
const HOMES: usize = 3;
const CHANNELS: usize = 3;
const MAX_LAUNCHES: usize = 10;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    New,
    Begun,
    Ended,
    Gone,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Waits {
    Tail(usize, u64),
    Launches(usize),
    Join(usize),
    End(usize),
}

struct Known {
    number: LaunchId,
    home: usize,
    parent: Option<(usize, usize)>,
    phase: Phase,
    waits: Option<Waits>,
}

struct Sent {
    id: DeferredId,
    object: usize,
    place: RequestPlace,
    sender: Option<usize>,
    launch: Option<usize>,
}

/// The model: lists, and nothing that is kept from one operation to the next.
#[derive(Default)]
struct World {
    launches: Vec<Known>,
    requests: Vec<Sent>,
    holders: [Option<usize>; OBJECTS],
    blocked: [Option<usize>; HOMES],
    positions: u64,
}

impl World {
    fn is_alive(&self, launch: usize) -> bool {
        matches!(self.launches[launch].phase, Phase::New | Phase::Begun)
    }

    fn waits_at(&self, launch: usize, place: RequestPlace) -> bool {
        match (place, self.launches[launch].waits) {
            (RequestPlace::MailLine, _) => true,
            (RequestPlace::Ring(channel, at), Some(Waits::Tail(of, tail))) => {
                (channel, at) == (of, tail)
            }
            _ => false,
        }
    }

    fn is_edge(&self, from: usize, to: usize) -> bool {
        let (start, end) = (&self.launches[from], &self.launches[to]);
        if start.phase == Phase::Gone {
            return false;
        }
        let by_request = self.requests.iter().any(|request| {
            self.holders[request.object] == Some(to)
                && self.is_alive(to)
                && (request.launch == Some(from)
                    || request.sender == Some(from) && self.waits_at(from, request.place))
        });
        let by_wait = match start.waits {
            Some(Waits::Join(other)) => other == to && self.is_alive(to),
            Some(Waits::Launches(by)) => end.parent == Some((from, by)) && self.is_alive(to),
            Some(Waits::End(home)) => end.home == home && end.phase != Phase::Gone,
            Some(Waits::Tail(..)) | None => false,
        };
        by_request || by_wait || from != to && self.blocked[start.home] == Some(to)
    }

    /// Whether any launch reaches itself, by all paths.
    fn has_ring(&self) -> bool {
        let n = self.launches.len();
        let mut reaches = [[false; MAX_LAUNCHES]; MAX_LAUNCHES];
        for (from, to) in (0..n).flat_map(|from| (0..n).map(move |to| (from, to))) {
            reaches[from][to] = self.is_edge(from, to);
        }
        for by in 0..n {
            for from in 0..n {
                for to in 0..n {
                    reaches[from][to] |= reaches[from][by] && reaches[by][to];
                }
            }
        }
        (0..n).any(|launch| reaches[launch][launch])
    }

    fn forget_request(&mut self, id: DeferredId) -> Option<Sent> {
        let place = self.requests.iter().position(|request| request.id == id)?;
        Some(self.requests.swap_remove(place))
    }

    fn place_of(&self, number: LaunchId) -> usize {
        let mut all = self.launches.iter();
        all.position(|launch| launch.number == number)
            .expect("made here")
    }

    fn check_objects(&self, objects: &[Address]) {
        let mut seen = BTreeSet::new();
        for &object in objects {
            assert!(seen.insert(object) && self.holders[object].is_some());
        }
        assert!(!objects.is_empty());
    }
}

/// Makes one random step if it may happen now. The numbers choose.
fn step(graph: &mut Graph, world: &mut World, [what, a, b, c]: [u8; 4]) {
    let (a, b, c) = (usize::from(a), usize::from(b), usize::from(c));
    let n = world.launches.len();
    if what % 10 == 0 || n == 0 {
        if n < MAX_LAUNCHES {
            let parent = (n > 0 && b % 2 == 0).then(|| (c % n, c / 7 % CHANNELS));
            let runs = |launch: &Known| launch.phase == Phase::Begun && launch.waits.is_none();
            let parent = parent.filter(|&(parent, _)| runs(&world.launches[parent]));
            let named = parent.map(|(parent, by)| (world.launches[parent].number, by));
            let home = a % HOMES;
            world.launches.push(Known {
                number: graph.launch(home, named),
                home,
                parent,
                phase: Phase::New,
                waits: None,
            });
        }
        return;
    }
    let launch = a % n;
    let Known {
        number,
        home,
        phase,
        waits,
        ..
    } = world.launches[launch];
    let runs = matches!(phase, Phase::Begun | Phase::Ended) && waits.is_none();
    let calls =
        |request: &Sent| request.sender == Some(launch) && request.place == RequestPlace::MailLine;
    let is_in_call = world.requests.iter().any(calls);
    let object = b % OBJECTS;
    match what % 10 {
        1 | 2 => {
            let waits = world.requests.iter().any(|r| r.launch == Some(launch));
            let is_free = world.holders[object].is_none() && world.blocked[home].is_none();
            if phase == Phase::New && !waits && is_free {
                graph.hold(number, object);
                world.holders[object] = Some(launch);
                world.launches[launch].phase = Phase::Begun;
            }
        }
        3 | 4 => defer(graph, world, [launch, object, c], runs && !is_in_call),
        5 if !world.requests.is_empty() => {
            let id = world.requests[b % world.requests.len()].id;
            graph.resume(id);
            world.forget_request(id);
        }
        6 | 7 if runs && !is_in_call => wait(graph, world, [launch, b, c]),
        8 if waits.is_some() && !is_in_call => {
            graph.go_on(number);
            world.launches[launch].waits = None;
            graph.unblock(number);
            world.blocked[home].take_if(|by| *by == launch);
        }
        9 if c % 4 == 0 && runs && world.blocked[home].is_none() => {
            world.blocked[home] = Some(launch);
            let refused = graph.block(number);
            apply(world, launch, &refused);
        }
        9 if !is_in_call && waits.is_none() && world.blocked[home] != Some(launch) => match phase {
            Phase::New | Phase::Begun => {
                graph.end(number);
                let begun = phase == Phase::Begun;
                world.launches[launch].phase = if begun { Phase::Ended } else { Phase::Gone };
            }
            Phase::Ended => {
                if let Some(object) = (0..OBJECTS).find(|&o| world.holders[o] == Some(launch)) {
                    graph.release(object);
                    world.holders[object] = None;
                } else {
                    graph.forget(number);
                    world.launches[launch].phase = Phase::Gone;
                }
            }
            Phase::Gone => {}
        },
        _ => {}
    }
}

fn defer(graph: &mut Graph, world: &mut World, [who, object, c]: [usize; 3], may_send: bool) {
    let sender = (may_send && c % 5 > 0).then_some(who);
    let is_new = |launch: &Known| launch.phase == Phase::New;
    let launch =
        world.launches.iter().position(is_new).filter(|&launch| {
            c % 3 == 0 && !world.requests.iter().any(|r| r.launch == Some(launch))
        });
    if world.holders[object].is_none() || sender.is_none() && launch.is_none() {
        return;
    }
    world.positions += 1;
    let place = if c % 2 == 0 && launch.is_none() {
        RequestPlace::MailLine
    } else {
        RequestPlace::Ring(c % CHANNELS, world.positions)
    };
    let number = |launch: Option<usize>| launch.map(|launch| world.launches[launch].number);
    let result = graph.defer(object, place, number(sender), number(launch));
    let id = *result.as_ref().unwrap_or(&DeferredId(0));
    world.requests.push(Sent {
        id,
        object,
        place,
        sender,
        launch,
    });
    assert_eq!(result.is_err(), world.has_ring());
    if let Err(objects) = result {
        world.requests.pop();
        world.check_objects(&objects);
    }
}

fn wait(graph: &mut Graph, world: &mut World, [launch, b, c]: [usize; 3]) {
    let mine = |request: &&Sent| request.sender == Some(launch);
    let places: Vec<RequestPlace> = world
        .requests
        .iter()
        .filter(mine)
        .map(|r| r.place)
        .collect();
    let waits = match c % 6 {
        0 => Waits::Join(b % world.launches.len()),
        1 => Waits::Launches(b % CHANNELS),
        2 if b % 3 == 0 => Waits::End(b / 3 % HOMES),
        _ => match places.get(b % places.len().max(1)) {
            Some(&RequestPlace::Ring(channel, at)) => Waits::Tail(channel, at),
            _ => Waits::Tail(b % CHANNELS, 0),
        },
    };
    let what = match waits {
        Waits::Tail(channel, at) => Wait::Tail(channel, at),
        Waits::Launches(by) => Wait::Launches(by),
        Waits::Join(other) => Wait::Join(world.launches[other].number),
        Waits::End(home) => Wait::End(home),
    };
    world.launches[launch].waits = Some(waits);
    let refused = graph.wait(world.launches[launch].number, what);
    apply(world, launch, &refused);
}

/// Applies refusals after `launch` has begun to wait: each resolved a ring, one after the other,
/// and no ring is left.
fn apply(world: &mut World, launch: usize, refused: &[(Option<Refused>, Vec<Address>)]) {
    for (what, objects) in refused {
        assert!(world.has_ring());
        let is_join = matches!(world.launches[launch].waits, Some(Waits::Join(_)));
        match *what {
            Some(Refused::Request(id, object)) => {
                let request = world.forget_request(id).expect("it was deferred");
                assert_eq!(request.object, object);
            }
            Some(Refused::Join(number)) => {
                let other = world.place_of(number);
                assert!(matches!(world.launches[other].waits, Some(Waits::Join(_))));
                world.launches[other].waits = None;
            }
            Some(Refused::Wait) | None => {
                assert_eq!(what.is_some(), is_join);
                world.launches[launch].waits = None;
            }
        }
        let held = objects
            .iter()
            .all(|&object| world.holders[object].is_some());
        assert!(held);
    }
    assert!(!world.has_ring());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// The graph finds a ring exactly if there is one, and leaves none.
    #[test]
    fn the_graph_finds_the_models_rings(steps: Vec<[u8; 4]>) {
        let (mut graph, mut world) = (Graph::new(), World::default());
        for choice in steps {
            step(&mut graph, &mut world, choice);
            prop_assert!(!world.has_ring());
        }
    }
}

/// Long runs, so that all kinds of steps meet.
#[test]
fn the_graph_finds_the_models_rings_in_long_runs() {
    let mut random = 1u64;
    let (mut deferred, mut rings) = (0, 0);
    for _ in 0..200 {
        let (mut graph, mut world) = (Graph::new(), World::default());
        for _ in 0..400 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let [a, b, c, d, ..] = (random >> 16).to_le_bytes();
            let (before, held) = (world.requests.len(), world.positions);
            step(&mut graph, &mut world, [a, b, c, d]);
            assert!(!world.has_ring(), "by {}", a % 10);
            deferred += world.positions - held;
            rings += u64::from(world.positions > held && world.requests.len() == before);
        }
    }
    assert!(deferred > 1000 && rings > 50, "{rings} of {deferred}");
}

//! Chains of migrations: whether one migration sets off others.
//!
//! The scheduler chapter says of as many fibres as processors: "If anything causes a fibre
//! migration, where two fibres end up on the same ready queue, work stealing will start occurring
//! and cause every fibre to shuffle around." So migrations would come in chains.
//!
//! A *chain* is a maximal run of migrations, of whichever fibres, in which each follows the one
//! before within [`WITHIN`]:
//!
//! ```text
//!   time       ──x─x──x─────────────x──────────────x─x──
//!   chains       └─ 3 ┘             1              └2┘
//! ```
//! Each fibre looks after each of its operations on which processor it runs. That is a load and a
//! comparison, so it is done only where chains are asked for; the clock is read at migrations alone.

use super::fibre;
use corelay_lab_measure::schema::fibres::MigrationChains;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// The longest pause within a chain. A processor that has run out of work looks for some, and one
/// that sleeps is woken, well within that. The monitor of a cluster, which causes migrations by
/// itself, looks five times less often at most.
pub(super) const WITHIN: Duration = Duration::from_micros(100);

/// Migrations that a fibre notes at most. If one has noted as many, the time after that is left out
/// for all.
const MOST: usize = 1 << 16;

/// A migration of a fibre.
#[derive(Clone, Copy, Debug)]
struct Move {
    at: Instant,
    from: Option<usize>,
    to: Option<usize>,
}

/// The migrations of one fibre, as the fibre itself has noted them.
#[derive(Debug)]
pub(super) struct Trail {
    home: Option<usize>,
    moves: Vec<Move>,
    /// The moment from which on no more was noted, if there were too many.
    full: Option<Instant>,
}

impl Trail {
    /// Begins the trail of the calling fibre.
    pub(super) fn start() -> Self {
        Self {
            home: fibre::processor(),
            moves: Vec::new(),
            full: None,
        }
    }

    /// Notes a migration if the fibre runs on another processor than at the last look.
    #[inline]
    pub(super) fn look(&mut self) {
        let here = fibre::processor();
        if here != self.home {
            self.moved(here);
        }
    }

    /// Notes a migration to processor `to`.
    #[cold]
    pub(super) fn moved(&mut self, to: Option<usize>) {
        let (at, from) = (Instant::now(), std::mem::replace(&mut self.home, to));
        match self.moves.len() < MOST {
            true => self.moves.push(Move { at, from, to }),
            false => _ = self.full.get_or_insert(at),
        }
    }
}

/// Counts the chains of all fibres' migrations between two moments.
pub(super) fn of<'a>(
    trails: impl IntoIterator<Item = &'a Trail>,
    began: Instant,
    over: Instant,
) -> MigrationChains {
    let trails: Vec<&Trail> = trails.into_iter().collect();
    let full = trails.iter().filter_map(|trail| trail.full).min();
    let over = full.map_or(over, |full| full.min(over));
    let all = trails.iter().enumerate();
    let all = all.flat_map(|(fibre, trail)| trail.moves.iter().map(move |&step| (fibre, step)));
    let mut moves: Vec<(usize, Move)> = all
        .filter(|(_, step)| (began..over).contains(&step.at))
        .collect();
    moves.sort_by_key(|(_, step)| step.at);
    let mut lengths: Vec<u64> = Vec::new();
    let mut found = MigrationChains {
        within_us: WITHIN.as_secs_f64() * 1e6,
        over_s: over.saturating_duration_since(began).as_secs_f64(),
        migrations: moves.len() as u64,
        ..MigrationChains::default()
    };
    for chain in moves.chunk_by(|(_, one), (_, next)| next.at - one.at <= WITHIN) {
        lengths.push(chain.len() as u64);
        let fibres: BTreeSet<usize> = chain.iter().map(|(fibre, _)| *fibre).collect();
        let ends = chain.iter().flat_map(|(_, step)| [step.from, step.to]);
        let processors: BTreeSet<usize> = ends.flatten().collect();
        found.most_fibres = found.most_fibres.max(fibres.len() as u64);
        found.most_processors = found.most_processors.max(processors.len() as u64);
    }
    lengths.sort_unstable();
    found.chains = lengths.len() as u64;
    found.alone = lengths.iter().filter(|&&length| length == 1).count() as u64;
    found.longest = lengths.last().copied().unwrap_or(0);
    let middle = lengths.len().saturating_sub(1) / 2;
    found.median = lengths.get(middle).copied().unwrap_or(0);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A trail of moves at so many microseconds after `began`, from one processor to another.
    fn trail(began: Instant, moves: &[(u64, usize, usize)]) -> Trail {
        let step = |&(us, from, to): &(u64, usize, usize)| Move {
            at: began + Duration::from_micros(us),
            from: Some(from),
            to: Some(to),
        };
        Trail {
            home: None,
            moves: moves.iter().map(step).collect(),
            full: None,
        }
    }

    #[test]
    fn chains_are_runs_of_migrations_of_all_fibres() {
        let began = Instant::now();
        let over = began + Duration::from_secs(1);
        let trails = [
            trail(began, &[(10, 0, 1), (130, 1, 2), (5_000, 2, 0)]),
            trail(began, &[(90, 1, 0), (7_000, 0, 3)]),
            trail(began, &[(7_100, 3, 0), (2_000_000, 0, 3)]),
        ];
        let found = of(&trails, began, over);
        let expected = MigrationChains {
            within_us: 100.0,
            over_s: 1.0,
            migrations: 6,
            // 10, 90, 130; 5,000; 7,000, 7,100. The last one came after the end.
            chains: 3,
            alone: 1,
            median: 2,
            longest: 3,
            most_fibres: 2,
            most_processors: 3,
        };
        assert_eq!(found, expected);
        assert_eq!(found.followers(), 3);
    }

    #[test]
    fn no_migration_is_no_chain() {
        let began = Instant::now();
        let none = of(&[trail(began, &[])], began, began + WITHIN);
        assert_eq!((none.chains, none.longest, none.followers()), (0, 0, 0));
    }

    #[test]
    fn time_after_a_full_trail_is_left_out_for_all() {
        let began = Instant::now();
        let mut full = trail(began, &[(10, 0, 1)]);
        full.full = Some(began + Duration::from_micros(500));
        let other = trail(began, &[(400, 1, 0), (600, 0, 1)]);
        let found = of([&full, &other], began, began + Duration::from_secs(1));
        assert_eq!((found.migrations, found.chains), (2, 2));
        assert!((found.over_s - 5e-4).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn a_trail_notes_where_its_fibre_goes() {
        let mut trail = Trail::start();
        trail.look();
        assert!(trail.moves.is_empty(), "this thread is no processor");
        for to in [Some(1), Some(0), None] {
            trail.moved(to);
        }
        let from: Vec<_> = trail.moves.iter().map(|step| step.from).collect();
        assert_eq!(from, [None, Some(1), Some(0)]);
    }
}

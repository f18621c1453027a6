//! The shared objects: a queue of tiles, and statistics.
//!
//! A tile is a number; the queue hands the numbers out in order. Both objects are boards, as the
//! objects of a workload have one type; the queue is variable 0, the statistics are variable 1.

use crate::workload::operation::Operation;

/// The variable that is the queue.
pub(super) const QUEUE: usize = 0;
/// The variable that has the statistics.
pub(super) const STATISTICS: usize = 1;

/// The answer of an empty queue.
pub(super) const NO_TILE: u64 = u64::MAX;
/// The answer to a tile's counts, which nobody needs.
pub(super) const COUNTED: u64 = u64::MAX - 1;

/// The counts of one tile.
#[derive(Clone, Copy, Debug, Default)]
pub struct TileCounts {
    pub(super) rays: u64,
    pub(super) reflections: u64,
    pub(super) ns: u64,
}

/// The counts of several tiles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub(super) tiles: u64,
    pub(super) rays: u64,
    pub(super) reflections: u64,
    /// Time in which tiles were traced, in nanoseconds.
    pub(super) ns: u64,
    /// Time of the tile that took longest, in nanoseconds.
    pub(super) slowest_ns: u64,
}

impl Totals {
    /// Number of fields that [`field`](Self::field) knows.
    pub(super) const FIELDS: usize = 5;

    pub(super) fn add(&mut self, tile: TileCounts) {
        self.merge(Self {
            tiles: 1,
            rays: tile.rays,
            reflections: tile.reflections,
            ns: tile.ns,
            slowest_ns: tile.ns,
        });
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.tiles += other.tiles;
        self.rays += other.rays;
        self.reflections += other.reflections;
        self.ns += other.ns;
        self.slowest_ns = self.slowest_ns.max(other.slowest_ns);
    }

    /// All fields, in order.
    fn fields(self) -> [u64; Self::FIELDS] {
        [
            self.tiles,
            self.rays,
            self.reflections,
            self.ns,
            self.slowest_ns,
        ]
    }

    /// The totals with these fields.
    pub(super) fn of([tiles, rays, reflections, ns, slowest_ns]: [u64; Self::FIELDS]) -> Self {
        Self {
            tiles,
            rays,
            reflections,
            ns,
            slowest_ns,
        }
    }
}

/// A shared object: the queue, or the statistics.
#[derive(Clone, Copy, Debug, Default)]
pub struct Board {
    /// Number of tiles of a picture.
    tiles: u64,
    /// The picture that the queue and the statistics belong to.
    picture: u32,
    next_tile: u64,
    totals: Totals,
    /// Number of requests so far, for all pictures.
    pub(super) seen: u64,
}

/// An operation on a board. It fits into the five words of the literature's request lines.
#[derive(Clone, Copy, Debug)]
pub enum Request {
    /// Takes the next tile of a picture.
    Take {
        /// The picture's number.
        picture: u32,
    },
    /// Counts a tile of a picture.
    Count {
        /// The picture's number.
        picture: u32,
        /// The counts of the tile.
        tile: TileCounts,
    },
    /// Reads a field of the statistics.
    Read {
        /// The field's number.
        field: usize,
    },
}

impl Operation<Board> for Request {
    type Answer = u64;

    #[inline]
    fn run(self, board: &mut Board) -> u64 {
        board.seen += 1;
        match self {
            Self::Take { picture } => {
                board.begin(picture);
                let tile = board.next_tile;
                if tile == board.tiles {
                    return NO_TILE;
                }
                board.next_tile += 1;
                tile
            }
            Self::Count { picture, tile } => {
                board.begin(picture);
                board.totals.add(tile);
                COUNTED
            }
            Self::Read { field } => board.totals.fields()[field],
        }
    }
}

impl Board {
    /// A board for pictures of so many tiles.
    pub(super) fn new(tiles: u64) -> Self {
        Self {
            tiles,
            ..Self::default()
        }
    }

    /// Starts anew if a request is for a later picture than the one before it.
    fn begin(&mut self, picture: u32) {
        if self.picture != picture {
            (self.picture, self.next_tile) = (picture, 0);
            self.totals = Totals::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queue_hands_out_each_tile_of_each_picture_once() {
        let mut board = Board::new(3);
        for picture in 1..=2 {
            let mut take = || Request::Take { picture }.run(&mut board);
            assert_eq!([take(), take(), take(), take()], [0, 1, 2, NO_TILE]);
        }
        assert_eq!(board.seen, 8);
    }

    #[test]
    fn statistics_add_up_the_tiles_of_one_picture() {
        let mut board = Board::new(3);
        let count = |board: &mut Board, picture, ns| {
            let (rays, reflections) = (10 * ns, 2 * ns);
            let tile = TileCounts {
                rays,
                reflections,
                ns,
            };
            Request::Count { picture, tile }.run(board)
        };
        let read = |board: &mut Board| {
            Totals::of(std::array::from_fn(|field| {
                Request::Read { field }.run(board)
            }))
        };
        for (picture, times) in [(1, &[7, 9, 8][..]), (2, &[5])] {
            for &ns in times {
                assert_eq!(count(&mut board, picture, ns), COUNTED);
            }
            let sum = times.iter().sum();
            let all = [
                times.len() as u64,
                10 * sum,
                2 * sum,
                sum,
                *times.iter().max().unwrap(),
            ];
            assert_eq!(read(&mut board), Totals::of(all));
        }
    }
}

//! `raytrace`: threads trace a picture tile by tile; a shared queue hands the tiles out (F7).
//!
//! The picture is a small scene of our own: spheres on a chequered plane, two lights, shadows and
//! reflections. Each client is a [worker](super::worker): it takes a tile from the queue, traces
//! it, and adds its counts (rays, reflections, time) to statistics. Queue and statistics are the
//! two shared variables, so a tile costs two requests. The figure is the *time to picture*: from
//! the start of the first client to the end of the last one.
//!
//! The smaller the tiles, the more requests for the same picture. A tile of one pixel, the default,
//! takes some 0.3 µs to trace (one thread without a queue, at 160x120 on the reference machine:
//! 340 ns a pixel), hardly more than two contended requests. So the work queue is the bottleneck,
//! as is the counter of all rays behind one lock in the ray tracers of the literature. A tile of 32
//! pixels a side takes a thousand times as long, and its requests hardly matter.
//!
//! A method whose answers come later has up to [`AHEAD`] tiles requested or waiting per client, so
//! that it traces one while the next one is on its way. A method that waits has one. `trust-post`
//! calls for a tile and posts the counts.
//!
//! # What is checked
//! Each picture is compared with one that a single thread has traced beforehand, and the
//! statistics, read through the method itself, with what the clients counted themselves. All
//! arithmetic is exact to the last bit on all machines, so the hash of a picture of one form is a
//! constant.
//!
//! | module | idea |
//! |---|---|
//! | `vector` | points, directions and colours |
//! | `scene` | the scene and its camera |
//! | `trace` | the colour of a ray |
//! | `board` | the queue and the statistics |
//! | `picture` | the pixels, and the check of a picture |

mod board;
mod picture;
mod scene;
mod trace;
mod vector;

pub use picture::{Form, Picture};

use crate::schema::{Extra, Size};
use crate::workload::operation::Workload;
use crate::workload::random::{Client, Random};
use crate::workload::worker::{AnyWorker, Ask, Worker};
use board::{Board, COUNTED, NO_TILE, QUEUE, Request, STATISTICS, TileCounts, Totals};
use corelay_sync::facade::atomic::{AtomicBool, Ordering};
use std::collections::VecDeque;
use std::sync::Arc;

/// The workload's name in results and on the command line.
pub const NAME: &str = "raytrace";

/// Number of shared variables: the queue and the statistics.
pub const VARS: u64 = 2;

/// The most tiles that a client has requested and not traced yet. With one the client would wait
/// for each; many would leave the last tiles of a picture to one client.
pub const AHEAD: usize = 4;

/// The workload: a picture to be traced.
#[derive(Clone, Copy, Debug)]
pub struct Raytrace {
    /// The picture, which all methods paint in turn.
    pub picture: &'static Picture,
}

impl Workload for Raytrace {
    type Object = Board;
    type Operation = Request;

    fn name(self) -> &'static str {
        NAME
    }

    fn object(self) -> Board {
        Board::new(self.picture.form().tiles())
    }

    fn operations(self, _: Random) -> impl FnMut() -> Request + Send + 'static {
        || unreachable!("a client of `raytrace` is a worker")
    }

    fn worker(self, client: &Client) -> AnyWorker<Request> {
        Some(match self.picture.is_reading() {
            false => Box::new(Painter::new(self.picture, Arc::clone(&client.stop))),
            true => Box::new(Reader::new(self.picture)),
        })
    }

    fn picture(self) -> Option<&'static Picture> {
        Some(self.picture)
    }

    fn check(self, board: &Board) -> Result<u64, String> {
        Ok(board.seen)
    }

    fn extra(self) -> Extra {
        let form = self.picture.form();
        Extra {
            size: Some(Size::Asked(format!("{}x{}", form.width, form.height))),
            tile: Some(form.tile as u64),
            depth: Some(form.depth.into()),
            alone_s: Some(self.picture.seconds_alone()),
            ..Extra::default()
        }
    }
}

/// A worker that paints tiles until the queue is empty or the slice is over.
struct Painter {
    picture: &'static Picture,
    /// The number of the picture.
    number: u32,
    stop: Arc<AtomicBool>,
    /// Tiles requested, without an answer yet.
    requested: usize,
    /// Tiles to be traced.
    tiles: VecDeque<u64>,
    /// The counts of the last tile, if they have not been sent yet.
    counts: Option<TileCounts>,
    /// Whether the queue was empty.
    is_empty: bool,
    own: Totals,
}

impl Painter {
    fn new(picture: &'static Picture, stop: Arc<AtomicBool>) -> Self {
        Self {
            picture,
            number: picture.number(),
            stop,
            requested: 0,
            tiles: VecDeque::with_capacity(AHEAD),
            counts: None,
            is_empty: false,
            own: Totals::default(),
        }
    }
}

impl Worker<Request> for Painter {
    fn ask(&mut self) -> Option<Ask<Request>> {
        let picture = self.number;
        if let Some(tile) = self.counts.take() {
            return Some(Ask {
                var: STATISTICS,
                operation: Request::Count { picture, tile },
                needs_answer: false,
            });
        }
        // Relaxed: the flag carries no data.
        let is_over = self.is_empty || self.stop.load(Ordering::Relaxed);
        if is_over || self.requested + self.tiles.len() >= AHEAD {
            return None;
        }
        self.requested += 1;
        Some(Ask {
            var: QUEUE,
            operation: Request::Take { picture },
            needs_answer: true,
        })
    }

    fn answered(&mut self, answer: u64) {
        if answer == COUNTED {
            return;
        }
        self.requested -= 1;
        match answer {
            NO_TILE => self.is_empty = true,
            tile => self.tiles.push_back(tile),
        }
    }

    fn work(&mut self) -> bool {
        let Some(tile) = self.tiles.pop_front() else {
            return false;
        };
        let counts = self.picture.paint(tile);
        self.own.add(counts);
        self.counts = Some(counts);
        true
    }
}

impl Drop for Painter {
    fn drop(&mut self) {
        self.picture.report(self.own);
    }
}

/// A worker that reads the statistics, a field at a time.
struct Reader {
    picture: &'static Picture,
    fields: [u64; Totals::FIELDS],
    read: usize,
    is_waiting: bool,
}

impl Reader {
    fn new(picture: &'static Picture) -> Self {
        Self {
            picture,
            fields: [0; Totals::FIELDS],
            read: 0,
            is_waiting: false,
        }
    }
}

impl Worker<Request> for Reader {
    fn ask(&mut self) -> Option<Ask<Request>> {
        if self.is_waiting || self.read == Totals::FIELDS {
            return None;
        }
        self.is_waiting = true;
        Some(Ask {
            var: STATISTICS,
            operation: Request::Read { field: self.read },
            needs_answer: true,
        })
    }

    fn answered(&mut self, answer: u64) {
        self.fields[self.read] = answer;
        self.read += 1;
        self.is_waiting = false;
        if self.read == Totals::FIELDS {
            self.picture.report_shared(Totals::of(self.fields));
        }
    }

    fn work(&mut self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests;

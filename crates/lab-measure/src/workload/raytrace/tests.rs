use super::board::{Board, NO_TILE, Request};
use super::*;
use crate::measure::plan::Item;
use crate::measure::rig::Rig;
use crate::measure::session::{Session, Timing};
use crate::method::{Contender, Kind, Method, SetupLimit};
use crate::schema::Run;
use crate::workload::operation::Operation;
use crate::workload::point::Point;
use std::ops::Range;
use std::sync::{LazyLock, Mutex};
use std::time::Duration;

/// A picture whose last tiles are smaller than the others.
const FORM: Form = Form {
    width: 40,
    height: 25,
    tile: 6,
    depth: 5,
};

/// A picture is painted by one method at a time, so each test has its own.
type Own = LazyLock<Picture>;

fn small() -> Picture {
    Picture::new(FORM, || true).unwrap()
}

fn measure(threads: usize, picture: &'static Picture, methods: &[Method<Raytrace>]) -> Vec<Run> {
    let mut rig = Rig::new(&vec![None; threads], &[], "test", Arc::default()).unwrap();
    let mut session = Session::of(Raytrace { picture });
    for &method in methods {
        let point = Point {
            vars: VARS,
            ..Point::small(threads)
        };
        let item = Item {
            method,
            point,
            notes: vec![],
        };
        session.add(item, &SetupLimit::default()).unwrap();
    }
    let timing = Timing::of(Duration::from_millis(1));
    session.warm_up(&rig, timing.warm, || {});
    for _ in 0..2 {
        session.round(&mut rig, timing, None, || {});
    }
    session.finish(&rig, timing)
}

#[test]
fn picture_is_the_same_on_every_machine_and_in_every_build() {
    let form = Form {
        width: 160,
        height: 120,
        tile: 1,
        depth: 5,
    };
    let picture = Picture::new(form, || true).unwrap();
    assert_eq!(format!("{:016x}", picture.hash()), "2a96c01329e9f733");
    // Not a picture of one colour: black, or the sky alone.
    let mut colours: Vec<&[u8]> = picture.rgb().chunks(3).collect();
    colours.sort_unstable();
    colours.dedup();
    assert!(colours.len() > 1_000, "{} colours", colours.len());
}

#[test]
fn depth_limits_the_reflections() {
    let rgb = |depth| {
        let form = Form { depth, ..FORM };
        Picture::new(form, || true).unwrap().rgb().to_vec()
    };
    assert_ne!(rgb(0), rgb(1));
    assert_ne!(rgb(1), rgb(5));
}

#[test]
fn every_method_paints_the_picture_with_two_and_with_five_threads() {
    static PICTURE: Own = Own::new(small);
    let picture = &*PICTURE;
    for threads in [2, 5] {
        let entries = Raytrace::methods();
        let methods: Vec<_> = entries.iter().map(|entry| entry.method).collect();
        for run in measure(threads, picture, &methods) {
            assert!(run.correct && run.median_mops > 0.0, "{run:?}");
            assert_eq!((run.workload.as_str(), run.samples.len()), (NAME, 2));
            assert_eq!((run.params.vars, run.params.secs), (2, 0.0));
            for sample in &run.samples {
                let painted = sample.picture.as_ref().unwrap();
                assert_eq!(painted.tiles, 7 * 5);
                assert_eq!(painted.hash, format!("{:016x}", picture.hash()));
                assert!(painted.seconds > 0.0 && painted.rays > 1_000);
                assert!(painted.slowest_tile_ns <= painted.tiles_ns);
                // At least a request for each tile, and one for its counts.
                let requests: u64 = sample.per_thread.iter().sum();
                assert!(requests >= 2 * painted.tiles, "{run:?}");
            }
        }
    }
}

static SPOILT: Own = Own::new(small);

/// A mutex around each board, with an operation that may be spoilt.
struct Spoilt {
    spoil: fn(Request, &mut Board) -> u64,
    boards: [Mutex<Board>; 2],
}

impl Contender for Spoilt {
    fn clients(&self) -> Range<usize> {
        0..2
    }

    fn client(&self, client: Client) -> u64 {
        let picture = &*SPOILT;
        client.call_each(Raytrace { picture }, |var, request| {
            (self.spoil)(request, &mut self.boards[var].lock().unwrap())
        })
    }

    fn total(&self) -> Result<u64, String> {
        Ok(self.boards.iter().map(|b| b.lock().unwrap().seen).sum())
    }
}

macro_rules! spoilt {
    ($spoil:expr) => {
        Method::new("spoilt", Kind::Direct, |workload: Raytrace, _, _| {
            Ok(Box::new(Spoilt {
                spoil: $spoil,
                boards: [(); 2].map(|()| Mutex::new(workload.object())),
            }))
        })
    };
}

#[test]
fn wrong_picture_and_wrong_statistics_have_no_figure() {
    let fine = spoilt!(|request, board| request.run(board));
    let twice = spoilt!(|request, board| match request.run(board) {
        8 => 7,
        answer => answer,
    });
    let lost = spoilt!(|request, board| match (request.run(board), request) {
        (8, Request::Take { .. }) => request.run(board),
        (answer, _) => answer,
    });
    let uncounted = spoilt!(|request, board| {
        let mut copy = *board;
        let answer = request.run(board);
        if matches!(request, Request::Count { .. }) && board.seen % 30 == 0 {
            copy.seen = board.seen;
            *board = copy;
        }
        answer
    });
    let empty = spoilt!(|request, board| {
        board.seen += 1;
        match request {
            Request::Take { .. } => NO_TILE,
            _ => 0,
        }
    });
    let runs = measure(2, &SPOILT, &[fine, twice, lost, uncounted, empty]);
    assert!(runs[0].correct, "{:?}", runs[0]);
    let found = ["never painted", "34 tiles", "the statistics say", "0 tiles"];
    for (run, what) in runs[1..].iter().zip(found) {
        assert!(!run.correct && run.by_mode.is_empty() && run.samples.is_empty());
        let wrong = run
            .notes
            .iter()
            .any(|n| n.contains("wrong result") && n.contains(what));
        assert!(wrong, "{what}: {:?}", run.notes);
    }
}

#[test]
fn interrupted_picture_has_no_figure_and_is_not_wrong() {
    static PICTURE: Own = Own::new(small);
    let picture = &*PICTURE;
    let mut rig = Rig::new(&[None; 2], &[], "test", Arc::default()).unwrap();
    let mut session = Session::of(Raytrace { picture });
    let item = Item {
        method: Raytrace::methods()[0].method,
        point: Point {
            vars: VARS,
            ..Point::small(2)
        },
        notes: vec![],
    };
    session.add(item, &SetupLimit::default()).unwrap();
    let timing = Timing::of(Duration::from_millis(1));
    assert!(session.round(&mut rig, timing, None, || {}));
    // Relaxed: one thread only.
    rig.interrupted.store(true, Ordering::Relaxed);
    assert!(!session.round(&mut rig, timing, None, || {}));
    let run = &session.finish(&rig, timing)[0];
    assert!(run.correct && run.samples.len() == 1, "{run:?}");
}

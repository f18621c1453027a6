//! A picture: what is to be traced, the pixels that workers paint, and the check of both.
//!
//! The picture is traced once beforehand by one thread, without a queue. Pictures by workers must
//! equal it, pixel by pixel, and their shared statistics must equal what the workers counted
//! themselves.

use super::board::{TileCounts, Totals};
use super::scene::Camera;
use super::trace::{self, Rays};
use crate::schema::PictureResult;
use corelay_sync::facade::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The measures of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// Width in pixels.
    pub width: usize,
    /// Height in pixels.
    pub height: usize,
    /// Side of a tile in pixels; the tiles at the right and at the bottom may be smaller.
    pub tile: usize,
    /// The most times that a ray is mirrored.
    pub depth: u32,
}

impl Form {
    /// Memory for the picture, in bytes: three for each pixel of the reference, four for those that
    /// workers paint.
    pub fn bytes(self) -> u64 {
        7 * self.width as u64 * self.height as u64
    }

    /// Number of tiles.
    pub fn tiles(self) -> u64 {
        (self.width.div_ceil(self.tile) * self.height.div_ceil(self.tile)) as u64
    }

    /// The pixels of a tile, as pairs of `x` and `y`.
    fn pixels(self, tile: u64) -> impl Iterator<Item = (usize, usize)> {
        let (tile, across) = (tile as usize, self.width.div_ceil(self.tile));
        let (left, top) = (tile % across * self.tile, tile / across * self.tile);
        let columns = left..self.width.min(left + self.tile);
        (top..self.height.min(top + self.tile))
            .flat_map(move |y| columns.clone().map(move |x| (x, y)))
    }
}

/// A picture that workers paint again and again, at one time for one method.
#[derive(Debug)]
pub struct Picture {
    form: Form,
    camera: Camera,
    reference: Reference,
    /// The pixels, row by row: red, green and blue below [`PAINTED`]; 0 if nobody has painted one.
    pixels: Box<[AtomicU32]>,
    /// The number of the present picture; each has its own.
    number: AtomicU32,
    /// Whether the picture is done, and clients read its statistics.
    is_reading: AtomicBool,
    reports: Mutex<Reports>,
}

/// The reports of the workers about the present picture.
#[derive(Debug, Default)]
struct Reports {
    /// The counts that the workers kept themselves.
    own: Totals,
    /// The shared statistics, once by each worker that has read them.
    shared: Vec<Totals>,
}

/// The picture as one thread traced it.
#[derive(Debug)]
struct Reference {
    rgb: Vec<u8>,
    rays: Rays,
    seconds: f64,
}

/// The bit that a painted pixel has beside its colour.
const PAINTED: u32 = 1 << 24;

impl Picture {
    /// Traces the reference. Calls `tick` after each row of pixels; if it returns false, so does
    /// this function return `None`.
    pub fn new(form: Form, mut tick: impl FnMut() -> bool) -> Option<Self> {
        let camera = Camera::new(form.width, form.height);
        let (start, mut rays) = (Instant::now(), Rays::default());
        let mut rgb = Vec::with_capacity(3 * form.width * form.height);
        for y in 0..form.height {
            let row =
                (0..form.width).flat_map(|x| trace::pixel(&camera, x, y, form.depth, &mut rays));
            rgb.extend(row);
            if !tick() {
                return None;
            }
        }
        let seconds = start.elapsed().as_secs_f64();
        let blank = (0..form.width * form.height).map(|_| AtomicU32::new(0));
        Some(Self {
            form,
            camera,
            reference: Reference { rgb, rays, seconds },
            pixels: blank.collect(),
            number: AtomicU32::new(0),
            is_reading: AtomicBool::new(false),
            reports: Mutex::default(),
        })
    }

    /// The measures of the picture.
    pub fn form(&self) -> Form {
        self.form
    }

    /// Red, green and blue of each pixel, row by row.
    pub fn rgb(&self) -> &[u8] {
        &self.reference.rgb
    }

    /// Time in which one thread traced the picture without a queue, in seconds.
    pub fn seconds_alone(&self) -> f64 {
        self.reference.seconds
    }

    /// The hash of the picture: FNV-1a of [`rgb`](Self::rgb), with 64 bits.
    pub fn hash(&self) -> u64 {
        fnv_1a(&self.reference.rgb)
    }

    /// The number of the present picture.
    pub(super) fn number(&self) -> u32 {
        // Relaxed: set before the workers start; the start carries it.
        self.number.load(Ordering::Relaxed)
    }

    /// Whether the picture is done, and clients read its statistics.
    pub(super) fn is_reading(&self) -> bool {
        // Relaxed: as `number`.
        self.is_reading.load(Ordering::Relaxed)
    }

    /// Begins a new picture with blank pixels. Called while no client runs.
    pub(crate) fn begin(&self) {
        // Relaxed: no client runs; the start of the next ones carries all of it.
        self.number.fetch_add(1, Ordering::Relaxed);
        self.is_reading.store(false, Ordering::Relaxed);
        for pixel in &self.pixels {
            pixel.store(0, Ordering::Relaxed);
        }
        *self.reports() = Reports::default();
    }

    /// Has the next clients read the statistics of the picture. Called while no client runs.
    pub(crate) fn begin_reading(&self) {
        // Relaxed: as in `begin`.
        self.is_reading.store(true, Ordering::Relaxed);
    }

    /// Paints a tile; returns its counts.
    pub(super) fn paint(&self, tile: u64) -> TileCounts {
        let (start, mut rays) = (Instant::now(), Rays::default());
        for (x, y) in self.form.pixels(tile) {
            let [red, green, blue] = trace::pixel(&self.camera, x, y, self.form.depth, &mut rays);
            let colour = u32::from_be_bytes([0, red, green, blue]);
            // Relaxed: read after the clients have been joined.
            self.pixels[y * self.form.width + x].store(PAINTED | colour, Ordering::Relaxed);
        }
        TileCounts {
            rays: rays.all,
            reflections: rays.reflections,
            ns: start.elapsed().as_nanos() as u64,
        }
    }

    /// Takes the counts that a worker kept itself.
    pub(super) fn report(&self, own: Totals) {
        self.reports().own.merge(own);
    }

    /// Takes the shared statistics as a worker read them.
    pub(super) fn report_shared(&self, shared: Totals) {
        self.reports().shared.push(shared);
    }

    /// Checks the picture that the workers painted in `seconds`, and its statistics.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub(crate) fn finish(&self, seconds: f64) -> Result<PictureResult, String> {
        let reports = self.reports();
        let own = reports.own;
        let (tiles, rays) = (self.form.tiles(), self.reference.rays);
        if own.tiles != tiles {
            return Err(format!(
                "{} tiles were painted instead of {tiles}",
                own.tiles
            ));
        }
        let hash = self.check_pixels()?;
        if (own.rays, own.reflections) != (rays.all, rays.reflections) {
            return Err(format!(
                "{} rays and {} reflections were cast instead of {} and {}",
                own.rays, own.reflections, rays.all, rays.reflections
            ));
        }
        match reports.shared.iter().find(|&&shared| shared != own) {
            Some(shared) => Err(format!(
                "the statistics say {shared:?}, and the clients counted {own:?} themselves"
            )),
            None if reports.shared.is_empty() => {
                Err("no client could read the statistics".to_owned())
            }
            None => Ok(PictureResult {
                seconds,
                hash: format!("{hash:016x}"),
                tiles,
                rays: own.rays,
                reflections: own.reflections,
                tiles_ns: own.ns,
                slowest_tile_ns: own.slowest_ns,
            }),
        }
    }

    /// The hash of the pixels that workers painted; they must be those of the reference.
    fn check_pixels(&self) -> Result<u64, String> {
        // Relaxed: the clients have been joined.
        let painted = self
            .pixels
            .iter()
            .map(|pixel| pixel.load(Ordering::Relaxed));
        let place = |at: usize| format!("pixel {},{}", at % self.form.width, at / self.form.width);
        let mut rgb = Vec::with_capacity(self.reference.rgb.len());
        for (at, pixel) in painted.enumerate() {
            if pixel & PAINTED == 0 {
                return Err(format!("{} was never painted", place(at)));
            }
            rgb.extend_from_slice(&pixel.to_be_bytes()[1..]);
        }
        let pairs = rgb.iter().zip(&self.reference.rgb);
        match pairs
            .enumerate()
            .find(|(_, (painted, wanted))| painted != wanted)
        {
            Some((at, _)) => Err(format!("{} has a wrong colour", place(at / 3))),
            None => Ok(fnv_1a(&rgb)),
        }
    }

    fn reports(&self) -> MutexGuard<'_, Reports> {
        // No thread panics while it holds the lock.
        self.reports.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The hash FNV-1a with 64 bits (Fowler, Noll and Vo).
fn fnv_1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

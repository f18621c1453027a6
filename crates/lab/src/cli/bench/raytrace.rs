//! `corelay bench raytrace`: measures the time to a picture whose tiles come from a shared queue.

use super::common::{self, NotedPoint, Opened, Team};
use super::throughput::{Methods, method_help, methods};
use crate::cli::list::number;
use corelay_lab_compare::COMMIT;
use corelay_lab_measure::host::Host;
use corelay_lab_measure::measure::memory::available_bytes;
use corelay_lab_measure::measure::plan::Item;
use corelay_lab_measure::measure::session::Timing;
use corelay_lab_measure::workload::raytrace::{Form, Picture, Raytrace, VARS};
use corelay_lab_report::exit::Exit;
use corelay_lab_report::output::{self, Target};
use corelay_lab_report::table;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::OnceLock;
use std::time::Duration;

/// The most pixels of a side. A larger number is a typing error.
const MAX_SIDE: u64 = 65_536;

/// Time to picture: trace a scene, tile by tile, from a shared queue
///
/// Each thread takes a tile from a shared queue, traces its rays, and adds its counts to shared
/// statistics. A sample lasts until the picture is done. A thread alone traces the picture
/// beforehand; every picture must be equal to it, pixel by pixel, and the statistics must be what
/// the threads counted themselves.
///
/// Tiles of one pixel make the queue the bottleneck. The larger the tiles, the less it matters how
/// the queue is shared.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Methods to compare, or `all`
    #[arg(long, value_name = "LIST", default_value = "all", value_parser = methods::<Raytrace>, help = method_help::<Raytrace>())]
    method: Methods<Raytrace>,

    /// Width and height of the picture in pixels; one number makes a square
    #[arg(
        long,
        allow_negative_numbers = true,
        value_name = "WxH",
        default_value = "320x240"
    )]
    size: Size,

    /// Side of a tile in pixels
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 1,
          value_parser = number(1..=MAX_SIDE))]
    tile: u64,

    /// The most times that a ray is mirrored
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 5,
          value_parser = number(0..=64))]
    depth: u64,

    /// Write the picture to a PNG file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    #[command(flatten)]
    team: Team,
}

/// The width and the height of a picture, in pixels.
#[derive(Clone, Copy, Debug)]
struct Size {
    width: u64,
    height: u64,
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (width, height) = text.split_once('x').unwrap_or((text, text));
        let side = number(1..=MAX_SIDE);
        let size = side(width).and_then(|width| {
            let height = side(height)?;
            Ok(Self { width, height })
        });
        size.map_err(|why| format!("{why}; write width and height in pixels, such as 320x240"))
    }
}

pub(super) fn run(args: &Args) -> Result<Exit, String> {
    // A workload is copied into threads, which do not say when they end.
    static PICTURE: OnceLock<Picture> = OnceLock::new();
    let (team, methods) = (&args.team, &args.method.0);
    team.check_threads(methods.iter())?;
    let form = args.form();
    check_memory(form, available_bytes())?;
    let host = Host::look(COMMIT);
    let mut items = Vec::new();
    for NotedPoint { point, notes } in team.points(&host, &[VARS])? {
        items.extend(methods.iter().map(|&method| Item {
            method,
            point: point.clone(),
            notes: notes.clone(),
        }));
    }
    let out = args.open_out()?;
    let mut opened = team.open(&host, &items)?;
    let Some(picture) = trace(form, &opened) else {
        return Ok(Exit::Interrupted);
    };
    let picture = PICTURE.get_or_init(|| picture);
    let timing = Timing::of(Duration::from_secs_f64(picture.seconds_alone()));
    let runs = team.measure(Raytrace { picture }, timing, &mut opened.rig, items)?;
    let wrong = common::has_wrong(&runs);
    let exit = opened.deliver(&host, runs, wrong, table::raytrace::of)?;
    if let Some((target, path)) = out {
        let written = target.write_with(|file| write_png(picture, file));
        written.map_err(|error| output::unwritable_file("--out", path, &error))?;
    }
    Ok(exit)
}

impl Args {
    fn form(&self) -> Form {
        Form {
            width: self.size.width as usize,
            height: self.size.height as usize,
            tile: self.tile as usize,
            depth: self.depth as u32,
        }
    }

    /// Opens the file of the picture, if there is one.
    fn open_out(&self) -> Result<Option<(Target, &Path)>, String> {
        let Some(out) = &self.out else {
            return Ok(None);
        };
        if let Some(json) = &self.team.json
            && output::is_same_place(out, json)
        {
            return Err(format!(
                "--out and --json both name {}; give each a file of its own",
                out.display()
            ));
        }
        Ok(Some((output::open_beside("--out", out)?, out)))
    }
}

/// Checks that the picture fits into half of the available memory; the PNG takes some, too.
fn check_memory(form: Form, available: Option<u64>) -> Result<(), String> {
    match available {
        Some(available) if form.bytes() > available / 2 => Err(format!(
            "--size {}x{}: the picture would take {} MiB, and {} MiB are available; make it smaller",
            form.width,
            form.height,
            form.bytes() >> 20,
            available >> 20
        )),
        _ => Ok(()),
    }
}

/// Traces the picture by one thread; `None` if Ctrl-C was pressed.
fn trace(form: Form, opened: &Opened) -> Option<Picture> {
    // About the time of a pixel.
    let expected = Duration::from_micros(form.width as u64 * form.height as u64);
    let bar = output::progress(form.height as u64, expected);
    bar.set_message("tracing alone");
    let picture = Picture::new(form, || {
        bar.inc(1);
        !opened.rig.is_interrupted()
    });
    bar.finish_and_clear();
    picture
}

fn write_png(picture: &Picture, file: &mut dyn Write) -> io::Result<()> {
    let form = picture.form();
    let mut encoder = png::Encoder::new(file, form.width as u32, form.height as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header().map_err(io::Error::other)?;
    writer
        .write_image_data(picture.rgb())
        .map_err(io::Error::other)?;
    writer.finish().map_err(io::Error::other)
}

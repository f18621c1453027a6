//! The picture of offsets: a square of all ordered pairs of CPUs.

use crate::figure::outcome::About;
use crate::plot::{HeatMap, Medium};
use crate::words::count;

/// Width, in units of the page's pictures.
const WIDTH: f64 = 720.0;

/// Draws each pair's smallest offset; `None` if none were measured. `id` is unique in the page.
pub(super) fn svg(about: &About, id: &str) -> Option<String> {
    let offsets = about.offsets.as_ref()?;
    let heat = HeatMap {
        id: id.to_owned(),
        title: about.title.clone(),
        description: format!(
            "Upper bounds of the offsets between the counters of {}, for each ordered pair the \
             smallest of {}.",
            count(offsets.cpus.len() as u64, "CPU", "CPUs"),
            count(offsets.samples.len() as u64, "sample", "samples"),
        ),
        label: "nanoseconds",
        of: "CPU",
        names: offsets.cpus.iter().map(usize::to_string).collect(),
        cells: offsets.least(),
        width: WIDTH,
    };
    Some(heat.svg(Medium::Page))
}

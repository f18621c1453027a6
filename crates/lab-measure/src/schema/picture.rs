//! The result of one picture of `raytrace`.

use serde::{Deserialize, Serialize};

/// A picture that several threads traced, and its statistics. They were shared by the method, and
/// were equal to what the threads counted themselves.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PictureResult {
    /// Time to picture: from the start of the first client to the end of the last one, in seconds.
    pub seconds: f64,
    /// Hash of the pixels (FNV-1a with 64 bits, in hexadecimal), the same for all methods.
    pub hash: String,
    /// Number of tiles.
    pub tiles: u64,
    /// Number of rays, to lights and mirrored ones included.
    pub rays: u64,
    /// Number of mirrored rays.
    pub reflections: u64,
    /// Time in which tiles were traced, in nanoseconds, all added up. The rest of the threads' time
    /// went to the queue and to the statistics.
    pub tiles_ns: u64,
    /// Time of the tile that took longest, in nanoseconds.
    pub slowest_tile_ns: u64,
}

//! Offsets for `serde`: the CPUs, and a row of bounds for each, `null` where nothing is known.

use super::Offsets;
use serde::ser::{Serialize, SerializeStruct, Serializer};

impl Serialize for Offsets {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let bounds = |from| (0..self.cpus.len()).map(move |to| self.at(from, to));
        let rows = (0..self.cpus.len()).map(|from| bounds(from).collect());
        let rows: Vec<Vec<Option<i64>>> = rows.collect();
        let mut to = to.serialize_struct("Offsets", 2)?;
        to.serialize_field("cpus", &self.cpus)?;
        to.serialize_field("ticks", &rows)?;
        to.end()
    }
}

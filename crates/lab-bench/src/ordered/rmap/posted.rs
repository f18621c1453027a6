//! The map with a trustee, which is told of an update and asked only when the whole is read: an update
//! wants no answer. A thread's own come in the order in which it has posted them, and its read behind
//! them.

use super::map::{Census, Map, Mapping};
use super::{Mapper, Rmap};
use crate::ordered::served::Served;
use corelay::Trust;
use corelay_lab_measure::schema::Trustee;
use corelay_lab_measure::workload::point::Point;

pub(super) struct Posted(Served<Trust<Map>>);

impl Posted {
    pub(super) fn new(point: &Point, pages: usize) -> Result<Self, String> {
        super::shared::delegated(point, pages).map(Self)
    }
}

/// A thread's handle.
pub(super) struct Poster<'a>(&'a Trust<Map>);

impl Rmap for Posted {
    type Mapper<'a> = Poster<'a>;

    fn mapper(&self) -> Self::Mapper<'_> {
        Poster(&self.0.objects()[0])
    }

    fn end(&mut self) -> Vec<Trustee> {
        self.0.end()
    }
}

impl Mapper for Poster<'_> {
    #[inline(always)]
    fn add(&mut self, mapping: Mapping) {
        self.0.post(move |map| map.add(mapping));
    }

    #[inline(always)]
    fn remove(&mut self, mapping: Mapping) {
        self.0.post(move |map| map.remove(mapping));
    }

    fn census(&mut self, owner: u32) -> Census {
        self.0.apply(move |map| map.census(owner))
    }

    fn settle(&mut self) {
        corelay::barrier().expect("no delegated closure panics");
    }
}

//! The map behind one mutex, or with a trustee: one code for both.

use super::map::{Census, Map, Mapping};
use super::{Mapper, Rmap};
use crate::ordered::served::Served;
use corelay::Trust;
use corelay_lab_measure::schema::Trustee;
use corelay_lab_measure::workload::point::Point;
use corelay_locks::StdMutex;
use corelay_sync::{Session, Shared};
use std::iter::once;

pub(super) fn locked(_: &Point, pages: usize) -> Result<Served<StdMutex<Map>>, String> {
    Ok(Served::locked(once(Map::new(pages))))
}

pub(super) fn delegated(point: &Point, pages: usize) -> Result<Served<Trust<Map>>, String> {
    Served::delegated(point, once(Map::new(pages)))
}

impl<L> Rmap for Served<L>
where
    L: Shared<Value = Map> + Send + Sync + 'static,
{
    type Mapper<'a> = Sessions<L::Session<'a>>;

    fn mapper(&self) -> Self::Mapper<'_> {
        Sessions(self.sessions())
    }

    fn end(&mut self) -> Vec<Trustee> {
        Served::end(self)
    }
}

/// The one with the map.
pub(super) struct Sessions<S>(Box<[S]>);

impl<S: Session<Value = Map>> Mapper for Sessions<S> {
    fn add(&mut self, mapping: Mapping) {
        self.0[0].apply(|map| map.add(mapping));
    }

    fn remove(&mut self, mapping: Mapping) {
        self.0[0].apply(|map| map.remove(mapping));
    }

    fn census(&mut self, owner: u32) -> Census {
        self.0[0].apply(|map| map.census(owner))
    }
}

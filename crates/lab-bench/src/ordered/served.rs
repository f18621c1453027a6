//! Objects behind a lock or behind a trustee: one implementation for both, by their common traits.

use corelay::{ClientGuard, Trust, Trustees};
use corelay_lab_measure::schema::Trustee;
use corelay_lab_measure::workload::point::Point;
use corelay_locks::StdMutex;
use corelay_sync::{Session, Shared};
use std::ops::Range;

/// Objects, each behind a way of sharing; and their trustees, if they have some.
pub(super) struct Served<L> {
    objects: Box<[L]>,
    /// `None` without trustees, and after the end.
    trustees: Option<Trustees>,
}

impl<T> Served<StdMutex<T>> {
    /// Puts each object behind a mutex.
    pub(super) fn locked(objects: impl Iterator<Item = T>) -> Self {
        Self {
            objects: objects.map(StdMutex::new).collect(),
            trustees: None,
        }
    }
}

impl<T: Send + 'static> Served<Trust<T>> {
    /// Entrusts the objects to the point's trustees, which it starts.
    pub(super) fn delegated(
        point: &Point,
        objects: impl Iterator<Item = T>,
    ) -> Result<Self, String> {
        let places = point.placement.iter().take(point.servers);
        let trustees = Trustees::dedicated(point.servers)
            .pin(places.copied().flatten())
            .start()
            .map_err(|error| format!("the trustees could not be started: {error}"))?;
        // The guard closes this thread's channels: it makes no requests while samples are taken.
        let _client = ClientGuard::new();
        Ok(Self {
            objects: trustees.entrust_all(objects).to_vec().into(),
            trustees: Some(trustees),
        })
    }
}

impl<L: Shared> Served<L> {
    /// The objects behind their locks or trustees.
    pub(super) fn objects(&self) -> &[L] {
        &self.objects
    }

    /// Sessions of the calling thread with all objects.
    pub(super) fn sessions(&self) -> Box<[L::Session<'_>]> {
        self.objects.iter().map(L::session).collect()
    }

    /// Applies `look` to each object in turn; the results.
    pub(super) fn each<R: Send>(&self, look: impl Fn(&mut L::Value) -> R + Sync) -> Vec<R>
    where
        L::Value: Send,
    {
        let _client = ClientGuard::new();
        let look = &look;
        let objects = self.objects.iter();
        objects.map(|object| object.session().apply(look)).collect()
    }

    /// Drops the objects and ends the trustees; returns the trustees' counts.
    pub(super) fn end(&mut self) -> Vec<Trustee> {
        self.objects = Box::default();
        let counted = self.trustees.take();
        let counted = counted.map_or_else(Vec::new, Trustees::shutdown);
        counted.iter().map(Trustee::from).collect()
    }
}

/// The threads of the crew that are clients: all but those whose CPUs the trustees use.
pub(super) fn clients(point: &Point) -> Range<usize> {
    point.servers..point.threads
}

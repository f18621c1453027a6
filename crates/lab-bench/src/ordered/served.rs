//! Objects behind a lock or behind a trustee: one code for both, by the traits that they share.

use corelay::{ClientGuard, Trust, Trustees};
use corelay_lab_measure::schema::Trustee;
use corelay_lab_measure::workload::point::Point;
use corelay_locks::StdMutex;
use corelay_sync::{Session, Shared};
use std::ops::Range;

/// Objects, each behind a way of sharing; and the trustees, where these serve them.
pub(super) struct Served<L> {
    objects: Box<[L]>,
    /// Until the end.
    trustees: Option<Trustees>,
}

impl<T> Served<StdMutex<T>> {
    /// Behind a mutex each.
    pub(super) fn locked(objects: impl Iterator<Item = T>) -> Self {
        Self {
            objects: objects.map(StdMutex::new).collect(),
            trustees: None,
        }
    }
}

impl<T: Send + 'static> Served<Trust<T>> {
    /// With the point's trustees.
    pub(super) fn delegated(
        point: &Point,
        objects: impl Iterator<Item = T>,
    ) -> Result<Self, String> {
        let places = point.placement.iter().take(point.servers);
        let trustees = Trustees::dedicated(point.servers)
            .pin(places.copied().flatten())
            .start()
            .map_err(|error| format!("trustees cannot be had: {error}"))?;
        // This thread asks for nothing while samples are taken.
        let _client = ClientGuard::new();
        Ok(Self {
            objects: trustees.entrust_all(objects).into(),
            trustees: Some(trustees),
        })
    }
}

impl<L: Shared> Served<L> {
    /// All of them.
    pub(super) fn objects(&self) -> &[L] {
        &self.objects
    }

    /// A thread's way to all of them.
    pub(super) fn sessions(&self) -> Box<[L::Session<'_>]> {
        self.objects.iter().map(L::session).collect()
    }

    /// Looks at each in turn.
    pub(super) fn each<R: Send>(&self, look: impl Fn(&mut L::Value) -> R + Sync) -> Vec<R>
    where
        L::Value: Send,
    {
        let _client = ClientGuard::new();
        let look = &look;
        let objects = self.objects.iter();
        objects.map(|object| object.session().apply(look)).collect()
    }

    /// What the trustees have counted; the objects are gone then.
    pub(super) fn end(&mut self) -> Vec<Trustee> {
        self.objects = Box::default();
        let counted = self.trustees.take();
        let counted = counted.map_or_else(Vec::new, Trustees::shutdown);
        counted.iter().map(Trustee::from).collect()
    }
}

/// Threads of the crew that are clients: those that no trustee runs instead of.
pub(super) fn clients(point: &Point) -> Range<usize> {
    point.servers..point.threads
}

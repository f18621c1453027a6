//! Lists behind a mutex each, or with a trustee: one code for both.

use super::list::List;
use super::{Member, Set, Shape};
use crate::ordered::served::Served;
use corelay::Trust;
use corelay_lab_measure::schema::Trustee;
use corelay_lab_measure::workload::point::Point;
use corelay_locks::StdMutex;
use corelay_sync::{Session, Shared};

pub(super) fn locked(_: &Point, shape: Shape) -> Result<Served<StdMutex<List>>, String> {
    Ok(Served::locked(lists(shape)))
}

pub(super) fn delegated(point: &Point, shape: Shape) -> Result<Served<Trust<List>>, String> {
    Served::delegated(point, lists(shape))
}

fn lists(shape: Shape) -> impl Iterator<Item = List> {
    (0..shape.buckets).map(|_| List::default())
}

impl<L> Set for Served<L>
where
    L: Shared<Value = List> + Send + Sync + 'static,
{
    type Member<'a> = Sessions<L::Session<'a>>;

    fn member(&self) -> Self::Member<'_> {
        Sessions(self.sessions())
    }

    fn keys(&self) -> Vec<Vec<u64>> {
        self.each(|list| list.keys())
    }

    fn end(&mut self) -> Vec<Trustee> {
        Served::end(self)
    }
}

/// One with each list.
pub(super) struct Sessions<S>(Box<[S]>);

impl<S: Session<Value = List>> Member for Sessions<S> {
    fn contains(&mut self, bucket: usize, key: u64) -> bool {
        self.0[bucket].apply(|list| list.contains(key))
    }

    fn insert(&mut self, bucket: usize, key: u64) -> bool {
        self.0[bucket].apply(|list| list.insert(key))
    }

    fn remove(&mut self, bucket: usize, key: u64) -> bool {
        self.0[bucket].apply(|list| list.remove(key))
    }
}

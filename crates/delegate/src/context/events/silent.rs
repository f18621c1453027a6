//! Functions that do nothing, in place of those of `traced.rs`, in builds without the feature
//! `tracing`.

use crate::error::CircularWait;
use crate::object::Header;
use crate::object::shared::Shared;
use crate::observe::sampler::Slow;
use std::any::Any;

/// A wait for room of which nobody is told.
#[derive(Default)]
pub(crate) struct WaitForRoom(());

impl WaitForRoom {
    #[inline(always)]
    pub(crate) fn begin(&mut self, _trustee: &Shared) {}

    #[inline(always)]
    pub(crate) fn end(&mut self, _trustee: &Shared) -> bool {
        false
    }
}

#[inline(always)]
pub(crate) fn poisoned(_object: &Header, _closure: &'static str, _payload: &(dyn Any + Send)) {}

#[inline(always)]
pub(crate) fn refused_circular(_ring: &CircularWait) {}

#[inline(always)]
pub(crate) fn ran_slowly(_slow: Option<Slow>) {}

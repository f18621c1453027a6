//! Functions that do nothing, in place of those of `traced.rs`, in builds without the feature
//! `tracing`.

use crate::error::CircularWait;
use crate::object::Header;
use crate::object::shared::Shared;
use crate::observe::sampler::Slow;
use std::any::Any;
use std::time::Instant;

#[inline(always)]
pub(crate) fn begin_wait_for_room() -> Option<Instant> {
    None
}

#[inline(always)]
pub(crate) fn waited_for_room(_trustee: &Shared, _since: Option<Instant>) {}

#[inline(always)]
pub(crate) fn poisoned(_object: &Header, _closure: &'static str, _payload: &(dyn Any + Send)) {}

#[inline(always)]
pub(crate) fn refused_circular(_ring: &CircularWait) {}

#[inline(always)]
pub(crate) fn ran_slowly(_slow: Option<Slow>) {}

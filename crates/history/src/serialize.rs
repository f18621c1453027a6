//! Calls and histories as values for `serde`: a history is a list of its threads, a thread a list of
//! its calls.
//!
//! ```text
//! [[{"operation":{"Write":1},"invoked":17,"returned":[42,"Written"]}],
//!  [{"operation":"Read","invoked":23}]]
//! ```
//! A call has the fields that it has in a [file](crate::History::write), apart from its thread.

use crate::history::{Call, History};
use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::{Serialize, Serializer};

#[derive(serde::Serialize)]
struct Written<'a, O, R> {
    operation: &'a O,
    invoked: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    returned: &'a Option<(u64, R)>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Read<O, R> {
    operation: O,
    invoked: u64,
    returned: Option<(u64, R)>,
}

impl<O: Serialize, R: Serialize> Serialize for Call<O, R> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Self {
            operation,
            invoked,
            answer,
        } = self;
        let written = Written {
            operation,
            invoked: *invoked,
            returned: answer,
        };
        written.serialize(to)
    }
}

/// Fails if the call returns before it is invoked.
impl<'de, O: Deserialize<'de>, R: Deserialize<'de>> Deserialize<'de> for Call<O, R> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let Read {
            operation,
            invoked,
            returned,
        } = Read::deserialize(from)?;
        Self::checked(operation, invoked, returned).map_err(D::Error::custom)
    }
}

impl<O: Serialize, R: Serialize> Serialize for History<O, R> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq((0..self.threads()).map(|thread| self.calls_of(thread)))
    }
}

/// Fails if a thread's calls are not in the order of their invocations.
impl<'de, O: Deserialize<'de>, R: Deserialize<'de>> Deserialize<'de> for History<O, R> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let threads = Vec::<Vec<Call<O, R>>>::deserialize(from)?;
        let mut history = Self::new();
        // Threads without calls.
        history.widen(threads.len());
        for (thread, calls) in threads.into_iter().enumerate() {
            for call in calls {
                history
                    .push_checked(thread, call)
                    .map_err(D::Error::custom)?;
            }
        }
        Ok(history)
    }
}

//! Policies: each says when a member of a flat team serves although it does not have to wait.
//!
//! A member always serves while it waits, and after its function has ended. A call to an object of
//! its own runs at once under any policy, if its ring is quiet; all policies but [`fast_path`] let
//! others in with it now and then. The policies differ in the rest:
//!
//! | policy | a request to an object of its own | between its own requests it serves |
//! |---|---|---|
//! | [`queue`] | travels through a ring, as all others | before each batch it publishes |
//! | [`blocked`] | travels through a ring | never |
//! | [`fast_path`] | runs at once | never |
//! | [`bound`] | runs at once | after every so many requests |
//! | [`doorbell`] | runs at once | when a waiting thread has rung |
//! | [`adaptive`] | runs at once, or travels if others' requests come between, or if that has got more done when it was tried | if they run at once: when a waiting thread has rung, and as often as it pays |

mod adaptive;
pub(crate) mod bell;
mod blocked;
mod bound;
mod doorbell;
mod fast_path;
mod queue;
mod trial;

use self::bell::Bell;
use std::fmt;
use std::str::FromStr;

/// The policy of a flat team's members: when they serve others although they need not wait.
///
/// ```
/// use corelay_delegate::Policy;
///
/// assert_eq!("bound:64".parse(), Ok(Policy::Bound(64)));
/// assert_eq!(Policy::FastPath.to_string(), "fast-path");
/// assert!("greedy".parse::<Policy>().is_err());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Policy {
    /// Before each batch of requests that the member publishes. Requests to own objects go through
    /// a ring like all others (the thesis's pending request queue).
    Queue,
    /// Only when the member waits. Requests to own objects go through a ring.
    Blocked,
    /// Only when the member waits, and requests to own objects run at once. A member that asks only
    /// itself never serves before its function ends: the thesis's greedy client.
    FastPath,
    /// When `FastPath` does, and after each run of this many requests: `1..=65_536`.
    Bound(u32),
    /// When `FastPath` does, and when a thread that waits for the member has rung its doorbell.
    Doorbell,
    /// By trial, from guesses about the load.
    ///
    /// While the member asks mostly itself or mostly others, it serves like `Doorbell` (looking at
    /// the bell every 8 requests to own objects), and after a number of requests that it finds by
    /// itself: fewer while others ring, more while passes find nothing. If the two alternate,
    /// requests to own objects go through a ring, and it serves like `Blocked`, or after 512
    /// requests; with each request if it makes them slowly. If it asks only itself and nobody else
    /// asks it, they go through a ring too, and it serves like `Queue`. If others ask, these are
    /// guesses: now and then the others of the three ways are tried (if requests alternate, that of
    /// `Queue` alone), and the one that got most done is kept.
    #[default]
    Adaptive,
}

/// The largest number of requests for [`Policy::Bound`].
pub(crate) const MAX_BOUND: u32 = 1 << 16;

/// A policy at work in one member: it says when the member makes a pass.
pub(crate) trait Schedule {
    /// Whether requests to own objects run at once now.
    fn is_direct(&self) -> bool;

    /// Whether it is time to serve: `requests` more have been made or are about to be, to `own`
    /// objects or to others'.
    fn is_due(&self, requests: u32, own: bool, bell: &Bell) -> bool;

    /// Whether it is time to serve before a request to an own object that runs at once. Under a
    /// policy whose requests travel, that is a call.
    #[inline(always)]
    fn is_due_at_once(&self, bell: &Bell) -> bool {
        self.is_due(1, true, bell)
    }

    /// Notes the end of a pass that was due. The pass has run `ran` requests. The trustee has run
    /// `in_all` since its start, including own requests that ran at once.
    fn served(&self, ran: u32, in_all: u64) {
        let _ = (ran, in_all);
    }
}

/// The policy of a member, chosen when it starts.
pub(crate) enum Chosen {
    Queue(queue::Queue),
    Blocked(blocked::Blocked),
    FastPath(fast_path::FastPath),
    Bound(bound::Bound),
    Doorbell(doorbell::Doorbell),
    Adaptive(adaptive::Adaptive),
}

macro_rules! each {
    ($chosen:expr, $policy:ident => $do:expr) => {
        match $chosen {
            Chosen::Queue($policy) => $do,
            Chosen::Blocked($policy) => $do,
            Chosen::FastPath($policy) => $do,
            Chosen::Bound($policy) => $do,
            Chosen::Doorbell($policy) => $do,
            Chosen::Adaptive($policy) => $do,
        }
    };
}

impl Schedule for Chosen {
    #[inline(always)]
    fn is_direct(&self) -> bool {
        each!(self, policy => policy.is_direct())
    }

    #[inline(always)]
    fn is_due(&self, requests: u32, own: bool, bell: &Bell) -> bool {
        each!(self, policy => policy.is_due(requests, own, bell))
    }

    #[inline(always)]
    fn is_due_at_once(&self, bell: &Bell) -> bool {
        each!(self, policy => policy.is_due_at_once(bell))
    }

    #[inline(always)]
    fn served(&self, ran: u32, in_all: u64) {
        each!(self, policy => policy.served(ran, in_all));
    }
}

impl Policy {
    pub(crate) fn choose(self) -> Chosen {
        match self {
            Self::Queue => Chosen::Queue(queue::Queue),
            Self::Blocked => Chosen::Blocked(blocked::Blocked),
            Self::FastPath => Chosen::FastPath(fast_path::FastPath),
            Self::Bound(n) => Chosen::Bound(bound::Bound::new(n)),
            Self::Doorbell => Chosen::Doorbell(doorbell::Doorbell),
            Self::Adaptive => Chosen::Adaptive(adaptive::Adaptive::new()),
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Queue => f.write_str("queue"),
            Self::Blocked => f.write_str("blocked"),
            Self::FastPath => f.write_str("fast-path"),
            Self::Bound(n) => write!(f, "bound:{n}"),
            Self::Doorbell => f.write_str("doorbell"),
            Self::Adaptive => f.write_str("adaptive"),
        }
    }
}

impl FromStr for Policy {
    type Err = ParsePolicyError;

    fn from_str(text: &str) -> Result<Self, ParsePolicyError> {
        let unknown = || ParsePolicyError(text.to_owned());
        Ok(match text {
            "queue" => Self::Queue,
            "blocked" => Self::Blocked,
            "fast-path" => Self::FastPath,
            "doorbell" => Self::Doorbell,
            "adaptive" => Self::Adaptive,
            _ => {
                let bound = text.strip_prefix("bound:").ok_or_else(unknown)?;
                let bound = bound.parse().map_err(|_| unknown())?;
                if !(1..=MAX_BOUND).contains(&bound) {
                    return Err(unknown());
                }
                Self::Bound(bound)
            }
        })
    }
}

/// The error of a text that names no [`Policy`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsePolicyError(String);

impl fmt::Display for ParsePolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "there is no policy `{}`: queue, blocked, fast-path, bound:N (1 to {MAX_BOUND} \
             requests), doorbell and adaptive are known",
            self.0
        )
    }
}

impl std::error::Error for ParsePolicyError {}

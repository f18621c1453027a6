//! What the members of a flat team ask of, and how steadily: the loads on which policies are
//! compared.
//!
//! Variable `i` belongs to member `i % members`.

use crate::workload::slow::compute;

/// A load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// Each member chooses among all variables.
    Uniform,
    /// Among its own.
    AllLocal,
    /// Among the others'.
    AllRemote,
    /// All choose among the first member's, who does so too.
    OneHotMember,
    /// As `Uniform`, but after every 256 requests a member computes for some 20 µs without
    /// calling corelay.
    Bursts,
}

/// Requests of a burst.
const BURST: u32 = 256;

/// Rounds of [`compute`] behind it: twenty times those of a slow operation, 15 to 22 µs.
const PAUSE: u32 = 20 * 512;

impl Load {
    /// The variables of `0..vars` among which a member chooses, each with the same probability;
    /// `None` for all of them.
    pub(super) fn variables(
        self,
        member: usize,
        members: usize,
        vars: usize,
    ) -> Option<Vec<usize>> {
        let of = |is_wanted: &dyn Fn(usize) -> bool| {
            Some((0..vars).filter(|var| is_wanted(var % members)).collect())
        };
        match self {
            Self::Uniform | Self::Bursts => None,
            Self::AllLocal => of(&|owner| owner == member),
            Self::AllRemote => of(&|owner| owner != member),
            Self::OneHotMember => of(&|owner| owner == 0),
        }
    }

    /// True where a member pauses, by [`pause`].
    pub(super) fn has_pauses(self) -> bool {
        self == Self::Bursts
    }
}

/// To be called after each request: computes after each [`BURST`] of them.
#[inline]
pub(super) fn pause() -> impl FnMut() {
    let mut left = BURST;
    move || {
        left -= 1;
        if left == 0 {
            left = BURST;
            std::hint::black_box(compute(PAUSE, u64::from(BURST)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_choose_among_whom_the_load_says() {
        let vars = |load: Load, member| load.variables(member, 3, 9);
        assert_eq!(vars(Load::Uniform, 1), None);
        assert_eq!(vars(Load::Bursts, 1), None);
        assert_eq!(vars(Load::AllLocal, 1), Some(vec![1, 4, 7]));
        assert_eq!(vars(Load::AllRemote, 1), Some(vec![0, 2, 3, 5, 6, 8]));
        for member in 0..3 {
            assert_eq!(vars(Load::OneHotMember, member), Some(vec![0, 3, 6]));
        }
    }
}

//! Helpers for the tests of flat teams.

use corelay_delegate::{Policy, Team, Trustees};

/// Every policy; bounds that are short and long.
pub(crate) const POLICIES: [Policy; 7] = [
    Policy::Queue,
    Policy::Blocked,
    Policy::FastPath,
    Policy::Bound(1),
    Policy::Bound(100),
    Policy::Doorbell,
    Policy::Adaptive,
];

/// Runs `test` for teams of one member, of as many as there are CPUs, and of more.
pub(crate) fn each_team(test: impl Fn(&Team)) {
    for policy in POLICIES {
        for (members, window) in [(1, 256), (2, 256), (3, 2), (5, 16)] {
            let team = Trustees::flat(members).policy(policy).window(window);
            let team = team.start().expect("threads");
            test(&team);
            team.shutdown();
        }
    }
}

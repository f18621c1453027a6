//! Helpers of the test bodies, and the list of all protocols whose clients wait.

use corelay_literature::{Blocking, Client};

/// Adds one to an object; the answer is the value before.
#[allow(dead_code, reason = "not every test file needs all of it")]
pub(crate) fn add<P: Blocking>(client: &mut Client<P, u64>, var: usize) -> u64 {
    client.apply(var, |count: &mut u64| {
        *count += 1;
        *count - 1
    })
}

/// Makes a module for each protocol, with one `#[test]` for each body: `fn body<P: Blocking>()`
/// beside the call.
macro_rules! for_all_protocols {
    ($bodies:tt) => {
        for_all_protocols!(ffwd FfwdLines $bodies);
        for_all_protocols!(rcl RclLines $bodies);
    };
    ($module:ident $lines:ident { $($body:ident),* $(,)? }) => {
        mod $module {
            $(
                #[test]
                fn $body() {
                    super::$body::<corelay_literature::$lines>();
                }
            )*
        }
    };
}
pub(crate) use for_all_protocols;

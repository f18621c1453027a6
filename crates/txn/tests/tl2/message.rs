//! The message of a panic.

use std::thread;

pub(crate) fn message(result: thread::Result<()>) -> String {
    let payload = result.expect_err("it panics");
    payload
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| payload.downcast_ref::<&str>().map(ToString::to_string))
        .expect("a sentence")
}

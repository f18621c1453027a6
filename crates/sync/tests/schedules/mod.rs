//! Exploring programs under shuttle, in random schedules. `CORELAY_SHUTTLE_ITERATIONS` says how
//! many each test draws.

/// Runs `f` in `usual` random schedules, or in as many as the environment asks for.
pub(crate) fn model(usual: usize, f: impl Fn() + Send + Sync + 'static) {
    shuttle::check_random(f, asked_or(usual));
}

/// The number of schedules that a test draws.
pub(crate) fn asked_or(usual: usize) -> usize {
    match std::env::var("CORELAY_SHUTTLE_ITERATIONS") {
        Ok(asked) => asked
            .parse()
            .expect("CORELAY_SHUTTLE_ITERATIONS is a number of schedules"),
        Err(_) => usual,
    }
}

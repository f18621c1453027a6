//! loom with one preemption more than the gate affords, ignored models included.

use super::Came;
use crate::binaries::Checker;
use crate::models::{self, Options};
use crate::workspace::Workspace;
use anyhow::Result;
use std::time::Duration;

/// Per model: a deep run has to end within an evening, and there are dozens of models. The run
/// says which of them were not explored to their end.
const BUDGET: Duration = Duration::from_secs(60);

/// Executions between two looks at the clock. By itself loom takes 20,000, and long ones would
/// then be stopped by the limit before it has looked.
const LOOK_EVERY: u32 = 1_000;

pub(super) fn run(workspace: &Workspace) -> Result<Came> {
    let options = Options {
        checker: Checker::Loom,
        filter: None,
        with_ignored: true,
        environment: vec![
            ("LOOM_MAX_PREEMPTIONS", "3".to_owned()),
            ("LOOM_MAX_DURATION", BUDGET.as_secs().to_string()),
            ("LOOM_CHECKPOINT_INTERVAL", LOOK_EVERY.to_string()),
        ],
        rounds: 1,
        budget: Some(BUDGET),
        // It looks at the clock only now and then.
        limit: Some(BUDGET * 3),
    };
    Ok(Came::of(&models::run(workspace, &options)?))
}

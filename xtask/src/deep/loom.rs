//! loom with one preemption more than the gate affords, ignored models included.

use super::Came;
use crate::binaries::Checker;
use crate::models::{self, Options};
use crate::workspace::Workspace;
use anyhow::Result;
use std::time::Duration;

/// Per model; the run says which models were not explored to their end.
const BUDGET: Duration = Duration::from_secs(300);

pub(super) fn run(workspace: &Workspace) -> Result<Came> {
    let options = Options {
        checker: Checker::Loom,
        filter: None,
        with_ignored: true,
        environment: vec![
            ("LOOM_MAX_PREEMPTIONS", "3".to_owned()),
            ("LOOM_MAX_DURATION", BUDGET.as_secs().to_string()),
        ],
        rounds: 1,
        budget: Some(BUDGET),
        // loom looks at the clock only now and then.
        limit: Some(BUDGET * 3),
    };
    Ok(Came::of(&models::run(workspace, &options)?))
}

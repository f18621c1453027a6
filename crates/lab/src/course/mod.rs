//! What is shown rather than measured: effects that a program can have, made visible.
//!
//! | module | idea |
//! |---|---|
//! | [`shown`] | what a step has shown, for the terminal and for the handout |
//! | [`report`] | all steps as one page, and as one file of results |
//! | [`guess`] | a guess before a step is run |
//! | [`greedy`] | a member of a flat team that asks only itself, and who gets nothing then (D13) |
//! | [`race`] | several threads count in one number: lost updates, and what being right costs (L9) |
//! | [`order`] | one client's requests on one request line, and on several (D14) |

pub mod greedy;
pub mod guess;
pub mod order;
pub mod race;
pub mod report;
pub mod shown;

/// What a step of the course has measured: its workloads are named after the steps.
///
/// ```
/// assert!(corelay_lab::course::is_workload("course-race"));
/// ```
pub fn is_workload(name: &str) -> bool {
    name.starts_with("course-")
}

//! The README and the guide as doctests: every Rust block in them compiles and runs with
//! `cargo test --workspace`. A page that is missing here is not tested.

#[doc = include_str!("../../../README.md")]
struct Readme;

#[doc = include_str!("../../../docs/guide/quick-start.md")]
struct QuickStart;

#[doc = include_str!("../../../docs/guide/choosing-a-method.md")]
struct ChoosingAMethod;

#[doc = include_str!("../../../docs/guide/flat-teams.md")]
struct FlatTeams;

#[doc = include_str!("../../../docs/guide/fibres.md")]
struct Fibres;

#[doc = include_str!("../../../docs/guide/guarantees.md")]
struct Guarantees;

#[doc = include_str!("../../../docs/guide/living-with-uncertainty.md")]
struct LivingWithUncertainty;

#[doc = include_str!("../../../docs/guide/watching.md")]
struct Watching;

#[doc = include_str!("../../../docs/guide/tracing.md")]
struct Tracing;

#[doc = include_str!("../../../docs/guide/reading-the-report.md")]
struct ReadingTheReport;

#[doc = include_str!("../../../docs/guide/testing-your-own-structure.md")]
struct TestingYourOwnStructure;

#[doc = include_str!("../../../docs/guide/ordered-by-clocks.md")]
struct OrderedByClocks;

#[doc = include_str!("../../../docs/guide/transactional-store.md")]
struct TransactionalStore;

#[doc = include_str!("../../../docs/guide/one-hot-map.md")]
struct OneHotMap;

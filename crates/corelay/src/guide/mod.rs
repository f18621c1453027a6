#![cfg_attr(not(doctest), doc = include_str!("links.md"))]
#![cfg_attr(not(doctest), doc = "")]
#![doc = include_str!("../../guide/README.md")]

// The pages lie in `docs/guide/`, where a repository's visitor looks for them. Each of their links
// has a label, which is defined at the page's end for that visitor. Markdown takes a label's first
// definition: here that is one of `links.md`, which leads to an item or to the repository.
// `cargo xtask tidy` finds labels that `links.md` does not have. Doctests do without it, so that the
// lines in their names are the page's.
//
// Every Rust block of these pages and of the README is compiled and run by
// `cargo test --workspace`. A page that is missing here is not tested.

macro_rules! page {
    (pub mod $name:ident, $file:literal) => {
        #[cfg_attr(not(doctest), doc = include_str!("links.md"))]
        #[cfg_attr(not(doctest), doc = "")]
        #[doc = include_str!(concat!("../../guide/", $file))]
        pub mod $name {}
    };
}

page!(pub mod quick_start, "quick-start.md");
page!(pub mod choosing_a_method, "choosing-a-method.md");
page!(pub mod flat_teams, "flat-teams.md");
page!(pub mod event_loops, "event-loops.md");
page!(pub mod fibres, "fibres.md");
page!(pub mod guarantees, "guarantees.md");
page!(pub mod watching, "watching.md");
page!(pub mod tracing, "tracing.md");
page!(pub mod reading_the_report, "reading-the-report.md");
page!(pub mod testing_your_own_structure, "testing-your-own-structure.md");
page!(pub mod living_with_uncertainty, "living-with-uncertainty.md");
page!(pub mod ordered_by_clocks, "ordered-by-clocks.md");
page!(pub mod one_hot_map, "one-hot-map.md");
page!(pub mod transactional_store, "transactional-store.md");

#[cfg(doctest)]
#[doc = include_str!("../../../../README.md")]
struct Readme;

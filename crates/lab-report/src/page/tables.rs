//! Tables: the fastest method at each point, the limits of a round trip, and every run.

use crate::data::{self, Measure, Subject};
use crate::mean::{Outside, SIGN};
use crate::method::{self, Styles};
use crate::model::ceilings::Ceilings;
use crate::model::lines;
use crate::plot::{grouped, short_count, significant, swatch};
use crate::table::grid::Grid;
use crate::verdict::{Judge, Need};
use crate::words;
use corelay_lab_measure::schema::{Mode, Run};
use maud::{Markup, PreEscaped, html};
use std::collections::BTreeSet;

/// Renders the fastest method at each point, for each need, mode and thread count.
pub(super) fn winners(subject: &Subject<'_>, styles: &Styles) -> Markup {
    let vars = subject.vars();
    html! {
        div.scroll {
            table.winners {
                thead {
                    tr {
                        th { "answer" }
                        @for v in &vars { th.num { (short_count(*v as f64)) } }
                    }
                }
                @for threads in subject.threads().into_iter().rev() {
                    @let runs = subject.at(threads);
                    @let judge = Judge::new(&runs);
                    @for mode in data::drawn_modes(&runs) {
                        tbody {
                            tr {
                                th colspan=(vars.len() + 1) class="group" {
                                    (words::count(threads as u64, "thread", "threads"))
                                    @if mode != Mode::Unknown { ", " (words::mode(mode)) }
                                }
                            }
                            @for need in [Need::AnswerNow, Need::AnswerLater, Need::NoAnswer] {
                                tr {
                                    th { (need.words()) }
                                    @for &v in &vars { (winner(&judge, v, mode, need, styles)) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn winner(judge: &Judge<'_>, vars: u64, mode: Mode, need: Need, styles: &Styles) -> Markup {
    let leaders = judge.leaders(&[vars], mode, &need.candidates());
    let Some((first, others)) = leaders.split_first() else {
        return html! { td.none { "–" } };
    };
    let mops = judge.median(vars, mode, first);
    html! {
        td class={ "win " (styles.style(first, 0).colour) } {
            b { (first) }
            small {
                (mops.map_or(String::new(), significant))
                @if !others.is_empty() {
                    " "
                    abbr title={ "cannot be told from " (words::and(others)) } { "± " (others.len()) }
                }
            }
        }
    }
}

/// Renders the limits of one round trip beside the measured values (F6).
pub(super) fn ceilings(subject: &Subject<'_>, threads: usize) -> Option<Markup> {
    let runs = subject.at(threads);
    let judge = Judge::new(&runs);
    let vars = *judge.vars().first()?;
    let delegated = runs.iter().find(|r| r.params.servers > 0)?;
    let clients = threads
        .checked_sub(delegated.params.servers)
        .filter(|&c| c > 0)?;
    let columns: Vec<(Mode, Ceilings)> = judge
        .modes()
        .into_iter()
        .filter_map(|m| {
            Some((
                m,
                Ceilings {
                    rtt_ns: data::round_trip(&runs, m)?,
                    clients,
                },
            ))
        })
        .collect();
    if columns.is_empty() {
        return None;
    }
    let measured = |method: &'static str, mode| judge.median(vars, mode, method);
    let text = |mops: Option<f64>| mops.map_or("–".to_owned(), significant);
    let on = words::count(vars, "variable", "variables");
    let each = words::count(clients as u64, "client", "clients");
    let row = |name: &str, value: &dyn Fn(Mode, Ceilings) -> String| {
        html! {
            tr {
                th { (words::prose(name)) }
                @for (mode, here) in &columns { td.num { (value(*mode, *here)) } }
            }
        }
    };
    Some(html! {
        div.scroll {
            table.ceilings {
                thead {
                    tr {
                        th {}
                        @for (mode, _) in &columns { th.num { (words::mode(*mode)) } }
                    }
                }
                tbody {
                    (row("round trip, ns (median of the probes)", &|_, c| significant(c.rtt_ns)))
                    (row("model: a line that crosses once per operation, Mops", &|_, c| {
                        significant(c.lock_handover())
                    }))
                    (row(&format!("measured: `mcs`, `ticket` on {on}, Mops"), &|m, _| {
                        format!("{}, {}", text(measured("mcs", m)), text(measured("ticket", m)))
                    }))
                    (row(&format!("model: {each}, one request each in flight, Mops"), &|_, c| {
                        significant(c.one_in_flight())
                    }))
                    (row(&format!("measured: `trust` on {on}, Mops"), &|m, _| {
                        text(measured("trust", m))
                    }))
                    (row(&format!("measured: `trust-then` on {on}, Mops"), &|m, _| {
                        text(measured("trust-then", m))
                    }))
                    (row("model: requests in flight that this takes", &|m, c| {
                        measured("trust-then", m).map_or("–".to_owned(), |mops| {
                            grouped(c.in_flight_for(mops).ceil() as u64)
                        })
                    }))
                }
            }
        }
    })
}

/// Makes the table of cache lines that the subject's methods move per operation on larger machines.
/// `None` if the model does not hold for the subject, or has none of its methods.
pub(super) fn lines_moved(subject: &Subject<'_>) -> Option<Grid> {
    if !subject.has_models() {
        return None;
    }
    let is_run = |method: &str| subject.right().any(|run| run.method == method);
    let rows = lines::MOVED.iter().filter(|(method, _)| is_run(method));
    let rows: Vec<Vec<String>> = rows
        .map(|(method, moved)| {
            let moved = moved.iter().map(|lines| significant(*lines));
            std::iter::once((*method).to_owned()).chain(moved).collect()
        })
        .collect();
    let head = lines::CPUS.iter().map(|cpus| format!("{cpus} CPUs"));
    (!rows.is_empty()).then(|| Grid {
        title: "Model: cache lines moved per operation on one variable".to_owned(),
        head: std::iter::once("method".to_owned()).chain(head).collect(),
        rows,
    })
}

/// Renders every run, with its figures in each mode.
pub(super) fn runs(subject: &Subject<'_>, styles: &Styles) -> Markup {
    let modes = subject.modes();
    let points: BTreeSet<(usize, u64)> = subject
        .runs
        .iter()
        .map(|r| (r.params.threads, r.params.vars))
        .collect();
    let at = |threads, vars| {
        let at = |r: &&&Run| r.params.threads == threads && r.params.vars == vars;
        let mut here: Vec<&Run> = subject.runs.iter().filter(at).copied().collect();
        here.sort_by_key(|r| method::rank(&r.method));
        here
    };
    let outside = subject.runs.iter().filter_map(|run| Outside::of_run(run));
    html! {
        div.scroll {
            table.runs {
                thead {
                    tr {
                        th rowspan="2" { "method" }
                        th rowspan="2" class="num" { "window" }
                        @for mode in &modes { th colspan="3" class="mode" { (mode_heading(*mode)) } }
                        th colspan="2" class="mode" { "all kept samples" }
                        th rowspan="2" class="num" { "per CPU used" }
                        th rowspan="2" { "split between clients" }
                    }
                    tr {
                        @for _ in &modes {
                            th.num { "median" } th.num { "quartiles" } th.num { "n" }
                        }
                        th.num { "median" } th.num { "harmonic" }
                    }
                }
                @for (threads, vars) in points {
                    tbody {
                        tr {
                            th colspan=(6 + 3 * modes.len()) class="group" {
                                (words::count(vars, "variable", "variables")) ", "
                                (words::count(threads as u64, "thread", "threads"))
                            }
                        }
                        @for run in at(threads, vars) { (row(run, &modes, styles)) }
                    }
                }
            }
        }
        @if let Some(sentence) = Outside::footnote(outside) { p.fine { (sentence) } }
    }
}

fn mode_heading(mode: Mode) -> &'static str {
    if mode == Mode::Unknown {
        "measured"
    } else {
        words::mode(mode)
    }
}

fn row(run: &Run, modes: &[Mode], styles: &Styles) -> Markup {
    let params = &run.params;
    html! {
        tr {
            th {
                (PreEscaped(swatch(styles.style(&run.method, 0))))
                (run.method)
                @if params.servers > 0 {
                    " " small { (words::count(params.servers as u64, "trustee", "trustees")) }
                }
            }
            td.num {
                @if params.window > 1 { (grouped(params.window as u64)) }
            }
            @if run.correct {
                @for &mode in modes {
                    @if let Some(s) = Measure::Throughput.of(run, mode) {
                        td.num { b { (significant(s.median_mops)) } }
                        td.num { (significant(s.q1_mops)) "–" (significant(s.q3_mops)) }
                        td.num { (s.n) }
                    } @else {
                        td colspan="3" class="none" { "not seen" }
                    }
                }
                td.num { (significant(run.median_mops)) }
                td.num {
                    (significant(run.harmonic_mean_mops))
                    @if let Some(outside) = Outside::of_run(run) {
                        abbr title=(outside.why()) { (SIGN) }
                    }
                }
                td.num { (per_cpu(run, modes)) }
                td { (split(run)) (notes(run)) }
            } @else {
                td colspan=(3 * modes.len() + 4) class="wrong" {
                    "wrong result: no figure" (notes(run))
                }
            }
        }
    }
}

/// Formats throughput per CPU used, in each mode.
fn per_cpu(run: &Run, modes: &[Mode]) -> String {
    let of = |&mode: &Mode| Some(significant(Measure::PerCpu.of(run, mode)?.median_mops));
    let per_cpu: Vec<String> = modes.iter().filter_map(of).collect();
    match per_cpu.is_empty() {
        true => "–".to_owned(),
        false => per_cpu.join(" / "),
    }
}

fn notes(run: &Run) -> Markup {
    html! {
        @for note in &run.notes { small.note { (note) } }
    }
}

/// The most clients whose shares are listed; more are given as a range.
const MAX_LISTED_CLIENTS: usize = 4;

/// Formats the clients' shares of the work in percent, the smallest first. Each is the median
/// over the samples.
fn split(run: &Run) -> String {
    let shares = data::shares(run, |mode| mode != Mode::Discarded);
    let nth = |i: usize| {
        shares
            .get(i)
            .map_or(String::new(), |share| format!("{:.0}", share * 100.0))
    };
    let clients = shares.len();
    match clients {
        0 => "–".to_owned(),
        1 => "one client".to_owned(),
        2..=MAX_LISTED_CLIENTS => format!(
            "{} %",
            (0..clients).map(nth).collect::<Vec<_>>().join(" / ")
        ),
        n => format!(
            "{}–{} % (even: {})",
            nth(0),
            nth(n - 1),
            significant(100.0 / n as f64)
        ),
    }
}

//! Tables: who wins at each point, what a round trip allows, and every run.

use crate::data::{self, Measure, Subject};
use crate::method::{self, Styles};
use crate::model::ceilings::Ceilings;
use crate::plot::{escape, grouped, short_count, significant};
use crate::verdict::{Judge, Need};
use crate::words;
use corelay_lab_measure::schema::{Mode, Run};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Who is fastest at each point, for each need, mode and thread count.
pub(super) fn winners(subject: &Subject<'_>, styles: &Styles) -> String {
    let vars = subject.vars();
    let mut out =
        String::from(r#"<div class="scroll"><table class="winners"><thead><tr><th>answer</th>"#);
    for v in &vars {
        let _ = write!(out, r#"<th class="num">{}</th>"#, short_count(*v as f64));
    }
    out.push_str("</tr></thead>");
    for threads in subject.threads().into_iter().rev() {
        let runs = subject.at(threads);
        let judge = Judge::new(&runs);
        for mode in data::drawn_modes(&runs) {
            let mode_words = if mode == Mode::Unknown {
                String::new()
            } else {
                format!(", {}", words::mode(mode))
            };
            let _ = write!(
                out,
                r#"<tbody><tr><th colspan="{}" class="group">{}{mode_words}</th></tr>"#,
                vars.len() + 1,
                words::count(threads as u64, "thread", "threads")
            );
            for need in [Need::AnswerNow, Need::AnswerLater, Need::NoAnswer] {
                let _ = write!(out, "<tr><th>{}</th>", need.words());
                for &v in &vars {
                    winner(&mut out, &judge, v, mode, need, styles);
                }
                out.push_str("</tr>");
            }
            out.push_str("</tbody>");
        }
    }
    out.push_str("</table></div>");
    out
}

fn winner(out: &mut String, judge: &Judge<'_>, vars: u64, mode: Mode, need: Need, styles: &Styles) {
    let leaders = judge.leaders(&[vars], mode, &need.candidates());
    let Some(first) = leaders.first() else {
        out.push_str(r#"<td class="none">–</td>"#);
        return;
    };
    let style = styles.style(first, 0);
    let mops = judge
        .median(vars, mode, first)
        .map_or(String::new(), significant);
    let others = match leaders.len() {
        1 => String::new(),
        n => {
            let names: Vec<String> = leaders[1..].iter().map(|m| (*m).to_owned()).collect();
            format!(
                r#" <abbr title="cannot be told from {}">± {}</abbr>"#,
                escape(&words::and(&names)),
                n - 1
            )
        }
    };
    let _ = write!(
        out,
        r#"<td class="win {}"><b>{}</b><small>{mops}{others}</small></td>"#,
        style.colour,
        escape(first)
    );
}

/// What one round trip allows, beside what was measured (F6).
pub(super) fn ceilings(subject: &Subject<'_>, threads: usize) -> Option<String> {
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
    let mut out =
        String::from(r#"<div class="scroll"><table class="ceilings"><thead><tr><th></th>"#);
    for (mode, _) in &columns {
        let _ = write!(out, r#"<th class="num">{}</th>"#, words::mode(*mode));
    }
    out.push_str("</tr></thead><tbody>");
    let mut row = |name: &str, value: &dyn Fn(Mode, Ceilings) -> String| {
        let _ = write!(out, "<tr><th>{}</th>", words::html(name));
        for (mode, here) in &columns {
            let _ = write!(out, r#"<td class="num">{}</td>"#, value(*mode, *here));
        }
        out.push_str("</tr>");
    };
    row("round trip, ns (median of the probes)", &|_, c| {
        significant(c.rtt_ns)
    });
    row(
        "model: a line that crosses once per operation, Mops",
        &|_, c| significant(c.lock_handover()),
    );
    let on = words::count(vars, "variable", "variables");
    row(
        &format!("measured: `mcs`, `ticket` on {on}, Mops"),
        &|m, _| {
            format!(
                "{}, {}",
                text(measured("mcs", m)),
                text(measured("ticket", m))
            )
        },
    );
    row(
        &format!(
            "model: {}, one request each in flight, Mops",
            words::count(clients as u64, "client", "clients")
        ),
        &|_, c| significant(c.one_in_flight()),
    );
    row(&format!("measured: `trust` on {on}, Mops"), &|m, _| {
        text(measured("trust", m))
    });
    row(&format!("measured: `trust-then` on {on}, Mops"), &|m, _| {
        text(measured("trust-then", m))
    });
    row("model: requests in flight that this takes", &|m, c| {
        measured("trust-then", m).map_or("–".to_owned(), |mops| {
            grouped(c.in_flight_for(mops).ceil() as u64)
        })
    });
    out.push_str("</tbody></table></div>");
    Some(out)
}

/// Every run, with per-mode figures.
pub(super) fn runs(subject: &Subject<'_>, styles: &Styles) -> String {
    let modes = subject.modes();
    let mut out = String::from(
        r#"<div class="scroll"><table class="runs"><thead><tr><th rowspan="2">method</th><th rowspan="2" class="num">window</th>"#,
    );
    for mode in &modes {
        let _ = write!(
            out,
            r#"<th colspan="3" class="mode">{}</th>"#,
            mode_heading(*mode)
        );
    }
    out.push_str(r#"<th colspan="2" class="mode">all kept samples</th><th rowspan="2" class="num">per CPU used</th><th rowspan="2">split between clients</th></tr><tr>"#);
    for _ in &modes {
        out.push_str(
            r#"<th class="num">median</th><th class="num">quartiles</th><th class="num">n</th>"#,
        );
    }
    out.push_str(r#"<th class="num">median</th><th class="num">harmonic</th></tr></thead>"#);
    let points: BTreeSet<(usize, u64)> = subject
        .runs
        .iter()
        .map(|r| (r.params.threads, r.params.vars))
        .collect();
    for (threads, vars) in points {
        let at = |r: &&&Run| r.params.threads == threads && r.params.vars == vars;
        let mut here: Vec<&Run> = subject.runs.iter().filter(at).copied().collect();
        here.sort_by_key(|r| method::rank(&r.method));
        let _ = write!(
            out,
            r#"<tbody><tr><th colspan="{}" class="group">{}, {}</th></tr>"#,
            6 + 3 * modes.len(),
            words::count(vars, "variable", "variables"),
            words::count(threads as u64, "thread", "threads")
        );
        for run in here {
            row(&mut out, run, &modes, styles);
        }
        out.push_str("</tbody>");
    }
    out.push_str("</table></div>");
    out
}

fn mode_heading(mode: Mode) -> &'static str {
    if mode == Mode::Unknown {
        "measured"
    } else {
        words::mode(mode)
    }
}

fn row(out: &mut String, run: &Run, modes: &[Mode], styles: &Styles) {
    let servers = match run.params.servers {
        0 => String::new(),
        n => format!(
            " <small>{}</small>",
            words::count(n as u64, "trustee", "trustees")
        ),
    };
    let window = if run.params.window <= 1 {
        String::new()
    } else {
        grouped(run.params.window as u64)
    };
    let _ = write!(
        out,
        r#"<tr><th>{}{}{servers}</th><td class="num">{window}</td>"#,
        styles.style(&run.method, 0).swatch(),
        escape(&run.method)
    );
    if !run.correct {
        let _ = write!(
            out,
            r#"<td colspan="{}" class="wrong">wrong result: no figure{}</td></tr>"#,
            3 * modes.len() + 4,
            notes(run)
        );
        return;
    }
    for &mode in modes {
        match Measure::Throughput.of(run, mode) {
            Some(s) => {
                let _ = write!(
                    out,
                    r#"<td class="num"><b>{}</b></td><td class="num">{}–{}</td><td class="num">{}</td>"#,
                    significant(s.median_mops),
                    significant(s.q1_mops),
                    significant(s.q3_mops),
                    s.n
                );
            }
            None => out.push_str(r#"<td colspan="3" class="none">not seen</td>"#),
        }
    }
    let per_cpu: Vec<String> = modes
        .iter()
        .filter_map(|&m| Measure::PerCpu.of(run, m))
        .map(|s| significant(s.median_mops))
        .collect();
    let per_cpu = if per_cpu.is_empty() {
        "–".to_owned()
    } else {
        per_cpu.join(" / ")
    };
    let _ = write!(
        out,
        r#"<td class="num">{}</td><td class="num">{}</td><td class="num">{per_cpu}</td><td>{}{}</td></tr>"#,
        significant(run.median_mops),
        significant(run.harmonic_mean_mops),
        split(run),
        notes(run)
    );
}

fn notes(run: &Run) -> String {
    let escaped = |n: &String| format!("<small class=\"note\">{}</small>", escape(n));
    run.notes.iter().map(escaped).collect()
}

/// More clients than this are given as a range.
const LISTED: usize = 4;

/// How the work was split between the clients: shares in per cent, the smallest first;
/// the median over the samples.
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
        2..=LISTED => format!(
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

//! The model and what was measured, for the terminal.

use super::{Point, Said};
use corelay_lab_measure::schema::Mode;
use corelay_lab_report::model::throughput::{Observed, PROOF, Side};
use corelay_lab_report::plot::significant;
use corelay_lab_report::table::columns::columns;
use std::fmt::Write;

/// Threads that got less than this share of their CPUs' time were disturbed.
const CROWDED: f64 = 0.9;

pub(super) fn of(said: &Said) -> String {
    let mut text = String::from("throughput = min(servers · Ts, clients · Tc), in Mops\n");
    match (said.law, &said.fit) {
        (Some(law), None) => {
            let (ts, tc) = (significant(law.ts), significant(law.tc));
            let _ = writeln!(text, "Ts = {ts}, Tc = {tc}: given; nothing is measured");
        }
        (_, Some(fit)) => {
            side(&mut text, "Ts", "server", fit.server);
            side(&mut text, "Tc", "client", fit.client);
        }
        (None, None) => {}
    }
    if let Some(method) = &said.method {
        let _ = writeln!(text, "{method}, {}, {}", work(said), mode(said.mode));
    }
    text.push('\n');
    let header = [
        "threads", "servers", "clients", "model", "bound", "measured", "residual",
    ];
    text += &format!("{}\n", columns(header, said.points.iter().map(row), 0));
    if let Some((best, equilibrium)) = said.best.zip(said.equilibrium) {
        let _ = writeln!(
            text,
            "Of {} threads {} should serve by the model; both sides are even at {}.",
            said.threads,
            best.servers,
            significant(equilibrium)
        );
    }
    caveats(&mut text, said);
    text
}

/// What is known of one side, and from where.
fn side(text: &mut String, name: &str, what: &str, fitted: Option<(f64, Observed)>) {
    let _ = match fitted {
        Some((mops, run)) => writeln!(
            text,
            "{name} = {} a {what}: fitted, from {} + {} (servers + clients) with {} + {} rounds",
            significant(mops),
            run.split.servers,
            run.split.clients,
            run.work.server,
            run.work.client,
        ),
        None => writeln!(
            text,
            "{name} is not known: no run is proved to have been bound by its {what}s"
        ),
    };
}

fn work(said: &Said) -> String {
    format!(
        "{} rounds in an operation, {} before a request",
        said.work.server, said.work.client
    )
}

fn mode(mode: Option<Mode>) -> &'static str {
    match mode {
        Some(Mode::Near) => "measured near",
        Some(Mode::Far) => "measured far",
        _ => "measured in no one mode",
    }
}

fn row(point: &Point) -> [String; 7] {
    let none = || "–".to_owned();
    let figure = |value: Option<f64>| value.map_or_else(none, significant);
    let bound = |side: Side| match side {
        Side::Servers => "servers".to_owned(),
        Side::Clients => "clients".to_owned(),
    };
    let residual = |share: f64| format!("{:+.1} %", share * 100.0);
    [
        (point.split.servers + point.split.clients).to_string(),
        point.split.servers.to_string(),
        point.split.clients.to_string(),
        figure(point.model),
        point.bound.map_or_else(none, bound),
        figure(point.measured),
        point.residual.map_or_else(none, residual),
    ]
}

/// What the figures do not show.
fn caveats(text: &mut String, said: &Said) {
    if said.measured_threads == 0 {
        return;
    }
    if said.threads != said.measured_threads {
        let _ = writeln!(
            text,
            "Beyond {} threads nothing was measured: the rows of {} threads are the model's alone.",
            said.measured_threads, said.threads
        );
    }
    if said.measured_threads == 2 {
        text.push_str(
            "Two threads divide in one way only, so that work and not numbers moves the bound, and \
             one point\nis compared. More divisions take more CPUs.\n",
        );
    }
    if let Some(share) = said.cpu_share.filter(|share| *share < CROWDED) {
        let _ = writeln!(
            text,
            "Other programs had the CPUs for part of the time: a run got {:.0} % of what its threads \
             could\nhave used. Figures and residuals are theirs, too.",
            share * 100.0
        );
    }
    if said.takes_turns {
        text.push_str(
            "With one request in flight client and server take turns: their times add up, where \
             the model\ntakes the longer one.\n",
        );
    }
    let fit = said.fit.unwrap_or_default();
    if fit.law().is_none() {
        let _ = writeln!(
            text,
            "A side is proved to be the bound where the other has done {PROOF} times as much in \
             another run:\ngive both sides work (--server-work, --client-work), or more threads."
        );
    }
}

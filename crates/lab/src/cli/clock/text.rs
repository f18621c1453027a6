//! The text output of `corelay clock`.

use super::{Findings, Largest, Moved, heat};
use corelay::clock::Clock;
use corelay_lab_report::plot::significant;
use corelay_lab_report::table::columns::columns;
use corelay_lab_report::units::Units;
use std::fmt::Write;

/// The most pairs of CPUs that are named as moved.
const MAX_SHOWN: usize = 5;

impl Findings {
    /// Formats the findings for the terminal.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        self.fitness(&mut text);
        self.boundary(&mut text);
        text.push('\n');
        text += &heat::text(&self.found);
        text.push('\n');
        self.costs(&mut text);
        text.push('\n');
        self.history.write(&mut text);
        text
    }

    fn fitness(&self, text: &mut String) {
        let fitness = &self.fitness;
        let _ = write!(text, "fit to order events: {}", fitness.source);
        if let Some(source) = &fitness.clock_source {
            let _ = write!(text, "; the kernel keeps time by {source}");
        }
        let hypervisor = fitness.hypervisor.as_deref();
        let _ = match hypervisor {
            Some(hypervisor) => writeln!(text, "; a virtual machine of {hypervisor}"),
            None => writeln!(text),
        };
    }

    fn boundary(&self, text: &mut String) {
        let (found, Largest { from, to, ns }) = (&self.found, self.largest());
        let _ = writeln!(
            text,
            "boundary: {:.1} ns ({} ticks{}); times of two CPUs that differ by no more are uncertain",
            self.ns(self.clock.boundary() as f64),
            self.clock.boundary(),
            self.cycles(self.ns(self.clock.boundary() as f64))
        );
        if self.is_raised() {
            let measured = self.ns(found.boundary as f64);
            let _ = writeln!(
                text,
                "  measured now: {measured:.1} ns; raised to the largest of this boot"
            );
        }
        let how = if found.composed {
            "composed"
        } else {
            "measured"
        };
        let _ = writeln!(
            text,
            "  it is the largest offset and a margin; the offset, {how} in {:.2} s, is at most \
             {ns:.1} ns{} from CPU {from} to CPU {to}",
            found.took.as_secs_f64(),
            self.units().beside(ns)
        );
        self.movement(text);
        let _ = writeln!(
            text,
            "  the counter steps by {:.1} ns; a nanosecond is {:.6} ticks, within {:.0} parts per \
             million",
            self.ns(found.step as f64),
            found.rate.ticks_per_ns,
            found.rate.error * 1e6
        );
    }

    /// Names a duration in cycles of a core, after a comma, if the core's rate is known.
    fn cycles(&self, ns: f64) -> String {
        let units = Units {
            ticks_per_ns: None,
            ..self.units()
        };
        match units.words(ns) {
            words if words.is_empty() => words,
            words => format!(", {words}"),
        }
    }

    fn movement(&self, text: &mut String) {
        let (looks, moved) = (self.found.looks, self.moved());
        let Some(farthest) = moved.first() else {
            let _ = writeln!(
                text,
                "  movement: no offset changed between {looks} looks at each pair"
            );
            return;
        };
        let _ = writeln!(
            text,
            "  movement: the host moves CPUs: offsets changed between {looks} looks; the boundary is \
             wider by {:.1} ns, and may still be too narrow: corelay-clock's `Watchdog` looks \
             again while a program runs, and `Logical` needs no boundary",
            farthest.ns
        );
        for Moved {
            from,
            to,
            ns,
            certain,
        } in moved.iter().take(MAX_SHOWN)
        {
            let how = if *certain {
                "certainly moved"
            } else {
                "moved, or noise"
            };
            let _ = writeln!(text, "    CPUs {from} and {to}: {ns:.1} ns, {how}");
        }
        if moved.len() > MAX_SHOWN {
            let _ = writeln!(text, "    and {} more pairs", moved.len() - MAX_SHOWN);
        }
    }

    fn costs(&self, text: &mut String) {
        let units = self.units();
        let row = |cost: &corelay_lab_measure::measure::reading::ReadCost| {
            let (low, high) = cost.quartiles_ns;
            let spread = format!("[{}–{}]", significant(low), significant(high));
            let words = [
                cost.way.to_owned(),
                cost.what.to_owned(),
                significant(cost.ns),
                spread,
            ];
            let in_units = [units.ticks(cost.ns), units.cycles(cost.ns)];
            words
                .into_iter()
                .chain(in_units.into_iter().flatten())
                .collect::<Vec<String>>()
        };
        let head = ["to read the time", "", "ns", "", "ticks"].map(str::to_owned);
        let cycles = units.core_ghz.map(|_| units.cycles_head());
        let head = head.into_iter().chain(cycles);
        let table = columns(head, self.costs.iter().map(row), 2);
        let _ = writeln!(text, "{table}");
        let _ = writeln!(
            text,
            "ticks are those of the counter, and exact; cycles, where they stand, are derived from the rate \
             of a core\nthat the kernel reports"
        );
        let ns = |way| {
            self.costs
                .iter()
                .find(|cost| cost.way == way)
                .map(|cost| cost.ns)
        };
        if let (Some(now), Some(rdtscp)) = (ns("Ordo::now"), ns("rdtscp")) {
            let _ = writeln!(text, "Ordo::now / rdtscp: {:.2}", now / rdtscp);
        }
    }
}

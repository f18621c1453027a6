//! A picture of the records: answers over steps, a line for each policy.

use super::{Record, Scenario};
use corelay_lab_report::plot::{Halo, LinePlot, Medium, Point, Scale, Series, Style, grouped};

const WIDTH: f64 = 860.0;

/// Draws the records as an SVG file of its own.
pub fn picture(scenario: Scenario, records: &[Record]) -> String {
    let Scenario { members, steps } = scenario;
    let victims = members - 1;
    let most = records.iter().map(Record::answered).max().unwrap_or(0);
    let plot = LinePlot {
        id: "greedy".to_owned(),
        title: format!(
            "What {victims} victims get from a member that makes {} requests to itself",
            grouped(steps)
        ),
        description: records
            .iter()
            .map(|record| format!("{}: {} answers.", record.policy, grouped(record.answered())))
            .collect::<Vec<_>>()
            .join(" "),
        x_label: "steps of the greedy member",
        y_label: "answers to the victims so far",
        x: Scale::Linear {
            low: 0.0,
            high: steps as f64,
        },
        x_ticks: Scale::Linear {
            low: 0.0,
            high: steps as f64,
        }
        .ticks(),
        // The axis starts at zero whatever the sizes, because the point of the picture is that
        // nothing came.
        y: Scale::Linear {
            low: 0.0,
            high: (most as f64 * 1.04).max(1.0),
        },
        series: records.iter().enumerate().map(series).collect(),
        marks: vec![],
        shade: None,
        width: WIDTH,
        room: (0, 0),
    };
    plot.svg(Medium::File)
}

fn series((nth, record): (usize, &Record)) -> Series {
    let point = |mark: &super::Mark| Point {
        x: mark.step as f64,
        y: mark.total() as f64,
        spread: (mark.total() as f64, mark.total() as f64),
        tip: format!(
            "{}: {} answers after {} steps",
            record.policy,
            grouped(mark.total()),
            grouped(mark.step)
        ),
        halo: Halo::None,
    };
    Series {
        label: match record.is_starved() {
            true => format!("{}: nothing", record.policy),
            false => record.policy.clone(),
        },
        style: Style {
            bold: record.is_starved(),
            ..Style::spare(nth)
        },
        points: record.marks.iter().map(point).collect(),
        faint: false,
    }
}

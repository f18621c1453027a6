//! The picture of `corelay model lines`: lines moved per operation over clients, a curve for each
//! method.

use super::lines::{CountResult, HEADING, Output, Row};
use corelay_lab_report::plot::{Halo, LinePlot, Medium, Point, Scale, Series, Style};

const WIDTH: f64 = 860.0;

/// Draws the counts as the text of an SVG file. A row without counts, or in which no line moved,
/// gives no point.
pub(super) fn picture(output: &Output) -> String {
    let mut series: Vec<Series> = Vec::new();
    for row in &output.rows {
        let known = series.iter().position(|series| series.label == row.method);
        let nth = known.unwrap_or(series.len());
        if known.is_none() {
            series.push(Series {
                label: row.method.clone(),
                style: Style::spare(nth),
                points: Vec::new(),
                faint: false,
            });
        }
        series[nth].points.extend(point(row));
    }
    for series in &mut series {
        series.points.sort_by(|a, b| a.x.total_cmp(&b.x));
    }
    series.retain(|series| !series.points.is_empty());
    let points = || series.iter().flat_map(|series| &series.points);
    let tips: Vec<String> = points().map(|point| format!("{}.", point.tip)).collect();
    let x = Scale::powers_of_two(points().map(|point| point.x));
    let y = Scale::for_values(points().map(|point| point.y));
    let size = output.size.map(|size| format!(" of {size}"));
    let size = size.unwrap_or_default();
    let plot = LinePlot {
        id: "lines-moved".to_owned(),
        title: format!(
            "{HEADING}, workload {}{size}, machine {}, threads placed: {}",
            output.workload, output.machine, output.pin
        ),
        description: tips.join(" "),
        x_label: "clients",
        y_label: match y {
            Scale::Log { .. } => "lines moved per operation (model), logarithmic",
            Scale::Linear { .. } => "lines moved per operation (model)",
        },
        x,
        x_ticks: Vec::new(),
        y,
        series,
        marks: Vec::new(),
        shade: None,
        width: WIDTH,
        room: (0, 0),
    };
    plot.svg(Medium::File)
}

fn point(row: &Row) -> Option<Point> {
    let CountResult::Counted {
        operations, all, ..
    } = &row.result
    else {
        return None;
    };
    let moved = all.moved.total();
    let lines = moved as f64 / *operations as f64;
    (moved > 0).then(|| Point {
        x: row.clients as f64,
        y: lines,
        spread: (lines, lines),
        tip: format!("{}, {} clients: {lines:.2} lines", row.method, row.clients),
        halo: Halo::None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::lines::Events;
    use super::*;

    #[test]
    fn methods_are_drawn_without_the_points_that_do_not_fit() {
        let events = |lines: u64| Events::from_moved([0, lines, 0]);
        let row = |method, clients, lines| Row {
            method: String::from(method),
            clients,
            result: CountResult::Counted {
                placement: Vec::new(),
                operations: 100,
                all: events(lines),
                server: None,
                fewest: 100,
                most: 100,
            },
        };
        let unavailable = "9 threads on 8".to_owned();
        let output = Output {
            schema: 1,
            what: HEADING,
            workload: "list",
            size: Some(64),
            machine: "1x8x1".to_owned(),
            pin: "sockets".to_owned(),
            work: 1,
            rows: vec![
                row("mcs", 1, 0),
                row("mcs", 4, 600),
                row("mcs", 8, 600),
                row("trust", 4, 300),
                Row {
                    method: "trust".to_owned(),
                    clients: 8,
                    result: CountResult::Unavailable { unavailable },
                },
            ],
        };
        let svg = picture(&output);
        let document = roxmltree::Document::parse(&svg).expect("it is well-formed");
        let text: String = document.descendants().filter_map(|n| n.text()).collect();
        for shown in [
            HEADING,
            "workload list of 64, machine 1x8x1, threads placed: sockets",
            "mcs, 8 clients: 6.00 lines",
            "trust, 4",
        ] {
            assert!(text.contains(shown), "{shown}: {text}");
        }
        assert!(!text.contains("mcs, 1 clients") && !text.contains("trust, 8"));
    }
}

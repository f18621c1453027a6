//! The picture of a trace: all of it, and a close-up of its busiest thread.

use crate::plot::{Kind, Medium, Panel, Row, Span, Timeline, duration, grouped};
use corelay_sync::trace::{Event, ThreadTrace, Trace};

/// Width of the picture, in units.
const WIDTH: f64 = 1200.0;

/// The most rows of a picture.
const MAX_ROWS: usize = 32;

/// Spans of a thread that the close-up shows.
const CLOSE_UP_SPANS: usize = 60;

/// The number of threads, and of stretches of each, that the close-up is chosen from.
const CLOSE_UP_CHOICES: usize = 16;

/// Colours of the events of corelay's own crates, in the order of the legend.
const COLOURS: &[(&str, &str)] = &[
    ("pass", "c-trust"),
    ("batch", "c-blue"),
    ("apply", "c-sky"),
    ("wait for room", "c-gold"),
    ("wait for answers", "c-brown"),
    ("barrier", "c-violet"),
    ("function", "c-green"),
    ("sleep", "c-grey"),
    ("wake one", "c-rose"),
    ("wake all", "c-rose"),
    ("part", "c-blue"),
];

/// Colours for events of other crates.
const SPARE: &[&str] = &["c-black", "c-green", "c-violet", "c-brown"];

/// Draws `trace`, of a run of `command`, as a file of its own.
pub fn picture(trace: &Trace, command: &str) -> String {
    drawn(trace, command, "timeline", Medium::File)
}

/// Draws `trace` for a page or a file of its own; `id` is unique there.
pub fn drawn(trace: &Trace, title: &str, id: &str, medium: Medium) -> String {
    let mut threads: Vec<&ThreadTrace> = trace.threads.iter().collect();
    threads.sort_by_key(|thread| std::cmp::Reverse(thread.events.len()));
    threads.truncate(MAX_ROWS);
    let kinds = kinds(&threads);
    let mut panels = vec![Panel {
        caption: format!("All of it: {}", duration(trace.length_ns)),
        from: 0,
        to: trace.length_ns.max(1),
        only_busy: false,
    }];
    if let Some((from, to)) = close_up(&threads) {
        panels.push(Panel {
            caption: format!(
                "Close-up: {} from {} on, of the threads that are active then",
                duration(to - from),
                duration(from)
            ),
            from,
            to,
            only_busy: true,
        });
    }
    let notes = notes(trace, threads.len());
    threads.sort_by_key(|thread| thread.number);
    let mut rows: Vec<_> = threads.iter().map(|thread| row(thread, &kinds)).collect();
    for (row, thread) in rows.iter_mut().zip(&threads) {
        let namesakes = threads.iter().filter(|other| other.name == thread.name);
        if namesakes.count() > 1 {
            row.label = format!("{} ({})", thread.name, thread.number);
        }
    }
    let timeline = Timeline {
        id: id.to_owned(),
        title: title.to_owned(),
        description: format!(
            "What each thread did when, from {} threads: spans as bars, instants as ticks below \
             them.",
            trace.threads.len()
        ),
        kinds,
        rows,
        panels,
        notes,
        width: WIDTH,
    };
    timeline.svg(medium)
}

fn kinds(threads: &[&ThreadTrace]) -> Vec<Kind<'static>> {
    let mut names: Vec<&'static str> = Vec::new();
    for event in threads.iter().flat_map(|thread| &thread.events) {
        if !names.contains(&event.mark.name()) {
            names.push(event.mark.name());
        }
    }
    let place = |name: &&str| COLOURS.iter().position(|(known, _)| known == name);
    names.sort_by_key(|name| place(name).unwrap_or(COLOURS.len()));
    let mut spare = SPARE.iter().cycle();
    names
        .into_iter()
        .map(|name| Kind {
            name,
            colour: match place(&name) {
                Some(known) => COLOURS[known].1,
                None => spare.next().expect("it goes round"),
            },
        })
        .collect()
}

fn row(thread: &ThreadTrace, kinds: &[Kind<'_>]) -> Row {
    // Ends of the spans that the present one lies in.
    let mut around: Vec<u64> = Vec::new();
    let mut place = |event: &Event| {
        while around.last().is_some_and(|&end| end <= event.begin_ns) {
            around.pop();
        }
        let to = event.duration_ns.map(|ns| event.begin_ns + ns);
        let depth = around.len();
        around.extend(to);
        let name = event.mark.name();
        let kind = kinds.iter().position(|kind| kind.name == name);
        Span {
            kind: kind.expect("the kinds are those of all events"),
            from: event.begin_ns,
            to,
            depth,
        }
    };
    let spans = thread.events.iter().map(&mut place).collect();
    let lost = thread.overwritten();
    let first = thread.events.first().map(|event| event.begin_ns);
    Row {
        label: thread.name.clone(),
        spans,
        gap: first.filter(|_| lost > 0).map(|first| {
            let why = format!("{} events overwritten", grouped(lost));
            (thread.since_ns.min(first), first, why)
        }),
    }
}

/// Returns the stretch for the close-up; `None` if there are so few spans that the whole picture
/// shows them. Candidates hold some spans of one of the busiest threads. Of their shorter half,
/// takes those in which the most threads are busy, and of these the middle one.
fn close_up(threads: &[&ThreadTrace]) -> Option<(u64, u64)> {
    let busiest = threads.iter().take(CLOSE_UP_CHOICES);
    let mut stretches: Vec<_> = busiest.flat_map(|thread| stretches(thread)).collect();
    stretches.sort_by_key(|(from, to)| to - from);
    stretches.truncate(stretches.len().div_ceil(2));
    let most = stretches.iter().map(|&stretch| busy(threads, stretch));
    let most = most.max()?;
    stretches.retain(|&stretch| busy(threads, stretch) == most);
    Some(stretches[stretches.len() / 2])
}

fn stretches(thread: &ThreadTrace) -> Vec<(u64, u64)> {
    let spans = thread.events.iter().filter(|e| e.duration_ns.is_some());
    let begins: Vec<_> = spans.map(|event| event.begin_ns).collect();
    let Some(last) = begins.len().checked_sub(2 * CLOSE_UP_SPANS) else {
        return Vec::new();
    };
    (0..CLOSE_UP_CHOICES)
        .map(|n| last * n / (CLOSE_UP_CHOICES - 1))
        .map(|at| (begins[at], begins[at + CLOSE_UP_SPANS]))
        .filter(|(from, to)| from < to)
        .collect()
}

/// Counts the threads that do something again and again in a stretch.
fn busy(threads: &[&ThreadTrace], (from, to): (u64, u64)) -> usize {
    let until = |thread: &ThreadTrace, time| thread.events.partition_point(|e| e.begin_ns < time);
    let is_busy =
        |thread: &&&ThreadTrace| until(thread, to) - until(thread, from) > CLOSE_UP_SPANS / 10;
    threads.iter().filter(is_busy).count()
}

fn notes(trace: &Trace, drawn: usize) -> Vec<String> {
    let events: usize = trace.threads.iter().map(|thread| thread.events.len()).sum();
    let mut notes = vec![format!(
        "{} events of {} threads. Spans narrower than three units are drawn together, column by \
         column, the paler the less of a column they take.",
        grouped(events as u64),
        trace.threads.len()
    )];
    if drawn < trace.threads.len() {
        notes.push(format!(
            "The {drawn} threads with the most events are drawn; the others are only in the file \
             of events."
        ));
    }
    let lost: u64 = trace.threads.iter().map(ThreadTrace::overwritten).sum();
    if lost > 0 {
        notes.push(format!(
            "Shaded: {} older events were overwritten by later ones. A thread keeps its last ones \
             (--events).",
            grouped(lost)
        ));
    }
    let refused = trace.refused;
    if refused.beyond_limit > 0 {
        notes.push(format!(
            "{} events of later threads were not recorded: earlier threads had used up the memory.",
            grouped(refused.beyond_limit)
        ));
    }
    if refused.ending > 0 {
        notes.push(format!(
            "{} events at the very end of threads were not recorded.",
            grouped(refused.ending)
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use corelay_sync::trace::{Mark, Refused};

    static PASS: Mark = Mark::new("pass");
    static WAKE: Mark = Mark::new("wake all");
    static OWN: Mark = Mark::new("of a program's own");

    fn event(mark: &'static Mark, begin_ns: u64, duration_ns: Option<u64>) -> Event {
        Event {
            mark,
            begin_ns,
            duration_ns,
            args: [0; 2],
        }
    }

    fn trace(threads: usize, events: &[Event]) -> Trace {
        let thread = |number| ThreadTrace {
            number,
            name: format!("owner-{number}"),
            since_ns: 0,
            recorded: events.len() as u64 + 7,
            events: events.to_vec(),
        };
        Trace {
            length_ns: 10_000,
            threads: (1..=threads as u32).map(thread).collect(),
            refused: Refused::default(),
        }
    }

    #[test]
    fn nested_spans_get_their_depth() {
        let events = [
            event(&OWN, 0, Some(100)),
            event(&PASS, 10, Some(20)),
            event(&WAKE, 15, None),
            event(&PASS, 40, Some(60)),
            event(&PASS, 100, Some(5)),
        ];
        let trace = trace(1, &events);
        let kinds = kinds(&[&trace.threads[0]]);
        let names: Vec<_> = kinds.iter().map(|kind| kind.name).collect();
        assert_eq!(names, ["pass", "wake all", "of a program's own"]);
        let row = row(&trace.threads[0], &kinds);
        let depths: Vec<_> = row.spans.iter().map(|span| span.depth).collect();
        assert_eq!(depths, [0, 1, 2, 1, 0]);
    }

    #[test]
    fn omissions_are_noted() {
        let long: Vec<_> = (0..1_000).map(|n| event(&PASS, 10 * n, Some(5))).collect();
        let svg = picture(&trace(MAX_ROWS + 1, &long), "corelay <bench>");
        roxmltree::Document::parse(&svg).expect("well-formed");
        assert!(svg.contains("The 32 threads"));
        assert!(svg.contains("Close-up: 600 ns from"), "{svg}");
        assert!(svg.contains(&format!("Shaded: {} older", 7 * (MAX_ROWS + 1))));
        let svg = picture(&trace(1, &[event(&WAKE, 3, None)]), "corelay");
        assert!(!svg.contains("Close-up") && !svg.contains("are drawn; the others"));
        // An empty trace has a picture, too.
        roxmltree::Document::parse(&picture(&trace(0, &[]), "corelay")).expect("well-formed");
    }
}

//! The picture of a trace: all of it, the time whose events are kept, and a close-up of its busiest
//! thread.

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

/// How many times longer a stretch must be than the next, for a panel between the two.
const PANEL_RATIO: u64 = 20;

/// Colours of the events of corelay's own crates, in the order of the legend. An event gets
/// another one if a span or instant of the same trace has its colour.
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
    ("wake all", "c-black"),
    ("part", "c-blue"),
];

/// All colours of the stylesheet, those that differ most first.
const ALL: &[&str] = &[
    "c-black", "c-green", "c-rose", "c-violet", "c-gold", "c-blue", "c-brown", "c-trust", "c-sky",
    "c-grey",
];

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
        if let Some((first, last)) = kept(&threads, (from, to), trace.length_ns) {
            panels.push(Panel {
                caption: format!(
                    "The events kept by the threads of the close-up: {} from {} on",
                    duration(last - first),
                    duration(first)
                ),
                from: first,
                to: last,
                only_busy: true,
            });
        }
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
    let mut kinds: Vec<Kind<'static>> = Vec::new();
    for event in threads.iter().flat_map(|thread| &thread.events) {
        let name = event.mark.name();
        let is_instant = event.duration_ns.is_none();
        match kinds.iter_mut().find(|kind| kind.name == name) {
            Some(known) => known.is_instant &= is_instant,
            None => kinds.push(Kind {
                name,
                colour: "",
                is_instant,
            }),
        }
    }
    let place = |name: &str| COLOURS.iter().position(|(known, _)| *known == name);
    kinds.sort_by_key(|kind| (kind.is_instant, place(kind.name).unwrap_or(COLOURS.len())));
    // First the colours that readers know from other traces, then what is left.
    for i in 0..kinds.len() {
        if let Some(known) = place(kinds[i].name) {
            let colour = COLOURS[known].1;
            let is_free = kinds.iter().all(|kind| kind.colour != colour);
            kinds[i].colour = if is_free { colour } else { "" };
        }
    }
    for i in 0..kinds.len() {
        if kinds[i].colour.is_empty() {
            kinds[i].colour = free_colour(&kinds, kinds[i].is_instant);
        }
    }
    kinds
}

/// Returns a colour that no kind has. If there is none, returns one that no other span has, or no
/// other instant: the two differ in shape.
fn free_colour(kinds: &[Kind<'_>], is_instant: bool) -> &'static str {
    let has = |kind: &&Kind<'_>, colour: &&str| kind.colour == *colour;
    let unused = |colour: &&&str| !kinds.iter().any(|kind| has(&kind, colour));
    let alike = || kinds.iter().filter(|kind| kind.is_instant == is_instant);
    let other_shape = |colour: &&&str| !alike().any(|kind| has(&kind, colour));
    let found = ALL
        .iter()
        .find(unused)
        .or_else(|| ALL.iter().find(other_shape));
    found.unwrap_or(&"c-grey")
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
            let why = format!("{} older events overwritten", grouped(lost));
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

/// Returns the time from the oldest to the youngest event that the threads of the close-up have
/// kept; `None` if the panels of the whole trace and of the close-up show as much. Of a long run a
/// busy thread keeps the last milliseconds, which in the whole are too narrow to be seen.
fn kept(threads: &[&ThreadTrace], (from, to): (u64, u64), length_ns: u64) -> Option<(u64, u64)> {
    let inside = |event: &Event| (from..to).contains(&event.begin_ns);
    let of_close_up = threads
        .iter()
        .filter(|thread| thread.events.iter().any(inside));
    let lossy: Vec<_> = of_close_up
        .filter(|thread| thread.overwritten() > 0)
        .collect();
    let begins = || {
        lossy
            .iter()
            .flat_map(|thread| &thread.events)
            .map(|event| event.begin_ns)
    };
    let (first, last) = (begins().min()?, begins().max()?);
    let length = last - first;
    (length * PANEL_RATIO < length_ns && length > (to - from) * PANEL_RATIO)
        .then_some((first, last))
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
        // Spans come first, instants after them.
        assert_eq!(names, ["pass", "of a program's own", "wake all"]);
        let row = row(&trace.threads[0], &kinds);
        let depths: Vec<_> = row.spans.iter().map(|span| span.depth).collect();
        assert_eq!(depths, [0, 1, 2, 1, 0]);
    }

    #[test]
    fn no_colour_of_the_legend_occurs_twice() {
        static MARKS: [Mark; 16] = [
            Mark::new("pass"),
            Mark::new("batch"),
            Mark::new("part"),
            Mark::new("apply"),
            Mark::new("wait for room"),
            Mark::new("wait for answers"),
            Mark::new("barrier"),
            Mark::new("function"),
            Mark::new("sleep"),
            Mark::new("sample"),
            Mark::new("wake one"),
            Mark::new("wake all"),
            Mark::new("client begins"),
            Mark::new("client ends"),
            Mark::new("trustee begins"),
            Mark::new("trustee ends"),
        ];
        let spans = 10;
        let events = MARKS.iter().zip(0..);
        let events = events.map(|(mark, n)| event(mark, 10 * n, (n < spans).then_some(5)));
        let trace = trace(1, &events.collect::<Vec<_>>());
        let kinds = kinds(&[&trace.threads[0]]);
        assert_eq!(kinds.len(), MARKS.len());
        for (i, kind) in kinds.iter().enumerate() {
            for other in &kinds[..i] {
                let alike = (kind.colour, kind.is_instant) == (other.colour, other.is_instant);
                assert!(!alike, "{} and {}", kind.name, other.name);
            }
        }
        // As long as there are enough, not even a span and an instant share one.
        let few = self::kinds(&[&ThreadTrace {
            events: trace.threads[0].events[7..].to_vec(),
            ..trace.threads[0].clone()
        }]);
        let mut colours: Vec<&str> = few.iter().map(|kind| kind.colour).collect();
        colours.sort_unstable();
        colours.dedup();
        assert_eq!(colours.len(), few.len());
    }

    #[test]
    fn a_long_run_has_a_panel_of_the_events_kept() {
        let late = |n: u64| event(&PASS, 2_900_000_000 + 100 * n, Some(50));
        let events: Vec<_> = (0..16_000).map(late).collect();
        let mut trace = trace(2, &events);
        trace.length_ns = 3_000_000_000;
        let svg = picture(&trace, "corelay bench");
        assert!(svg.contains("All of it: 3 s"));
        assert!(
            svg.contains("threads of the close-up: 1.6 ms from 2.9 s on"),
            "{svg}"
        );
        assert!(svg.contains("Close-up: 6 µs"));
        // The whole picture says in its rows what is missing from them.
        assert!(svg.contains(">7 older events overwritten</text>"), "{svg}");
        trace
            .threads
            .iter_mut()
            .for_each(|thread| thread.recorded = 16_000);
        assert!(!picture(&trace, "corelay bench").contains("The events kept"));
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

//! Calls as a picture: a line for each thread, time to the right.
//!
//! Only the order of invocations and returns is drawn, not how long things took. They get columns
//! in that order, each as far right as the texts before it demand.

use crate::counterexample::Bar;
use std::fmt::Write;

/// The widest picture, in characters; a wider one has numbers instead of texts, and a list.
const WIDE: usize = 110;
const MARK: &str = "  <- not explained";

/// Draws `bars`, and marks one of them. One that has not returned goes on to the end.
pub(crate) fn draw<O, R>(bars: &[Bar<O, R>], marked: Option<usize>) -> String {
    let texts: Vec<String> = bars.iter().map(|bar| bar.text.clone()).collect();
    let (picture, width) = with_texts(bars, &texts, marked);
    if width <= WIDE {
        return picture;
    }
    let numbers: Vec<String> = (1..=bars.len()).map(|n| format!("#{n}")).collect();
    let (mut picture, _) = with_texts(bars, &numbers, marked);
    picture.push('\n');
    for (number, text) in numbers.iter().zip(&texts) {
        writeln!(picture, "{number:>4}  {text}").expect("a String takes everything");
    }
    picture
}

/// Draws the picture with a text for each bar. Returns it with its width in characters.
fn with_texts<O, R>(
    bars: &[Bar<O, R>],
    texts: &[String],
    marked: Option<usize>,
) -> (String, usize) {
    let texts: Vec<String> = bars
        .iter()
        .zip(texts)
        .map(|(bar, text)| format!("{} {text} -", if bar.cut { ".." } else { "|-" }))
        .collect();
    let columns = columns(bars, &texts);
    let mut threads: Vec<usize> = bars.iter().map(|bar| bar.thread).collect();
    threads.sort_unstable();
    threads.dedup();
    let digits = threads.last().map_or(1, |thread| thread.to_string().len());
    let (mut picture, mut width) = (String::new(), 0);
    for thread in threads {
        // Calls of one thread may overlap, so it has as many lines as that takes.
        let mut lines: Vec<Row> = Vec::new();
        for (index, bar) in bars.iter().enumerate() {
            if bar.thread != thread {
                continue;
            }
            let (from, to) = columns[index];
            let free = lines.iter().position(|line| line.width < from);
            let line = free.unwrap_or_else(|| {
                lines.push(Row::default());
                lines.len() - 1
            });
            lines[line].draw(from, to, &texts[index], Some(index) == marked);
        }
        for (row, line) in lines.iter().enumerate() {
            let name = if row == 0 {
                format!("thread {thread:<digits$}")
            } else {
                " ".repeat("thread ".len() + digits)
            };
            let mark = if line.marked { MARK } else { "" };
            let line = format!("{name}  {}{mark}", line.text);
            width = width.max(line.chars().count());
            picture.push_str(&line);
            picture.push('\n');
        }
    }
    (picture, width)
}

#[derive(Default)]
struct Row {
    text: String,
    /// The row's width in characters.
    width: usize,
    marked: bool,
}

impl Row {
    fn draw(&mut self, from: usize, to: usize, text: &str, marked: bool) {
        self.text.push_str(&" ".repeat(from - self.width));
        self.text.push_str(text);
        let drawn = from + text.chars().count();
        self.text.push_str(&"-".repeat(to - drawn));
        self.text.push('|');
        self.width = to + 1;
        self.marked |= marked;
    }
}

/// Chooses the columns of the two ends of each bar.
fn columns<O, R>(bars: &[Bar<O, R>], texts: &[String]) -> Vec<(usize, usize)> {
    let mut ends: Vec<(u64, bool, usize)> = Vec::new();
    for (index, bar) in bars.iter().enumerate() {
        ends.push((bar.call.invoked(), false, index));
        ends.push((bar.call.ended().unwrap_or(u64::MAX), true, index));
    }
    // At equal stamps invocations come first: the calls overlap.
    ends.sort_unstable();
    let mut columns = vec![(0, 0); bars.len()];
    let mut next = 0;
    for (_, ended, index) in ends {
        if ended {
            let (from, to) = &mut columns[index];
            *to = next.max(*from + texts[index].chars().count());
            next = *to + 2;
        } else {
            columns[index].0 = next;
            next += 2;
        }
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Call;

    fn bar(thread: usize, when: std::ops::RangeInclusive<u64>, text: &str) -> Bar<(), ()> {
        Bar {
            thread,
            number: 1,
            call: Call::returned((), when, ()),
            text: text.to_owned(),
            cut: false,
        }
    }

    #[test]
    fn order_is_drawn_and_overlap_is_seen() {
        let mut bars = [
            bar(0, 0..=9, "write 1"),
            bar(10, 2..=4, "read -> 1"),
            bar(10, 5..=8, "read -> 0"),
        ];
        bars[0].cut = true;
        assert_eq!(
            draw(&bars, Some(2)),
            "thread 0   .. write 1 -----------------------|\n\
             thread 10    |- read -> 1 -| |- read -> 0 -|  <- not explained\n"
        );
    }

    #[test]
    fn calls_of_one_thread_may_overlap() {
        let bars = [bar(0, 0..=2, "a"), bar(0, 1..=3, "b"), bar(0, 4..=5, "c")];
        assert_eq!(
            draw(&bars, Some(0)),
            "thread 0  |- a -|   |- c -|  <- not explained\n\
             \x20           |- b -|\n"
        );
    }

    #[test]
    fn wide_calls_are_listed() {
        let long = "x".repeat(80);
        let bars = [bar(0, 0..=1, &long), bar(1, 2..=3, &long)];
        assert_eq!(
            draw(&bars, Some(1)),
            format!(
                "thread 0  |- #1 -|\n\
                 thread 1           |- #2 -|  <- not explained\n\
                 \n  #1  {long}\n  #2  {long}\n"
            )
        );
    }
}

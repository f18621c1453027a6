//! What the processor really does: the compiled increment, instruction by instruction, and where
//! others come between.
//!
//! The instructions are not those of a textbook but of this very program, read from its memory. A
//! compiler may make three of them of the racy increment (load, add, store: the window lies between
//! the first and the last), or one, which loads and stores by itself and is no more atomic for that
//! unless it says `lock`.

use corelay_sync::facade::atomic::{AtomicU64, Ordering::Relaxed};

/// An instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// Bytes from the beginning of the function.
    pub(crate) offset: usize,
    /// As an assembler writes it.
    pub(crate) text: String,
    /// What it does to the counter.
    pub(crate) touch: Touch,
}

/// What an instruction does to memory that is not the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Touch {
    /// Nothing.
    None,
    /// It loads.
    Load,
    /// It stores.
    Store,
    /// It loads and stores, and others may come between.
    Both,
    /// It loads and stores, and nobody comes between.
    Atomic,
    /// Nobody can say: it calls a function.
    Call,
}

/// Where the window is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Window {
    /// After the line of the first number and before that of the second.
    Between(usize, usize),
    /// Inside the one line.
    Inside(usize),
    /// There is none: the line is atomic.
    None(usize),
    /// It cannot be told.
    Unknown,
}

/// Finds it.
pub(crate) fn window(lines: &[Line]) -> Window {
    let touching = |touch| lines.iter().position(|line| line.touch == touch);
    if touching(Touch::Call).is_some() {
        return Window::Unknown;
    }
    match (touching(Touch::Load), touching(Touch::Store)) {
        (Some(load), Some(store)) if load < store => Window::Between(load, store),
        (None, None) => match (touching(Touch::Both), touching(Touch::Atomic)) {
            (Some(both), None) => Window::Inside(both),
            (None, Some(atomic)) => Window::None(atomic),
            _ => Window::Unknown,
        },
        _ => Window::Unknown,
    }
}

/// A function with its window marked.
pub(crate) fn marked(lines: &[Line]) -> String {
    let window = window(lines);
    let width = lines.iter().map(|line| line.text.len()).max().unwrap_or(0);
    let blank = " ".repeat(6 + width);
    let mut out = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let said = match window {
            Window::Between(load, _) if number == load => "load: the number as it is now",
            Window::Between(_, store) if number == store => {
                "store: over whatever has come in between"
            }
            Window::Between(load, store) if (load..store).contains(&number) => "| the window",
            Window::Inside(both) if number == both => {
                "load, add, store: the window is inside, for there is no `lock`"
            }
            Window::None(atomic) if number == atomic => {
                "load, add, store as one: the line stays here meanwhile"
            }
            _ => "",
        };
        if matches!(window, Window::Between(_, store) if number == store) {
            out.push(format!("{blank}  | the window closes"));
        }
        let text = format!("{:>+4}  {:width$}  {said}", line.offset, line.text);
        out.push(text.trim_end().to_owned());
        if matches!(window, Window::Between(load, _) if number == load) {
            out.push(format!(
                "{blank}  | the window opens: who else stores now is not noticed"
            ));
        }
    }
    out.join("\n")
}

/// The increment where nobody wants to know what was there before: shown, not run in the race.
#[inline(never)]
fn without_an_answer(counter: &AtomicU64) {
    // Relaxed, both: it is the racy increment, and nothing is published through the counter.
    counter.store(counter.load(Relaxed) + 1, Relaxed);
}

/// What the compiler has made of the increments, or why it cannot be shown.
#[derive(Debug)]
pub struct Compiled {
    /// That of `lost`, as it runs in the race.
    pub(crate) lost: Result<Vec<Line>, String>,
    /// The same where nobody wants to know what was there before.
    pub(crate) without_an_answer: Result<Vec<Line>, String>,
    /// That of `atomic`.
    pub(crate) atomic: Result<Vec<Line>, String>,
}

/// Reads this program's own instructions.
pub fn compiled() -> Compiled {
    Compiled {
        lost: lines_of(super::lost::increment),
        without_an_answer: lines_of(without_an_answer),
        atomic: lines_of(super::atomic::increment),
    }
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
use super::code::lines_of;

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
fn lines_of<R>(_: fn(&AtomicU64) -> R) -> Result<Vec<Line>, String> {
    Err("instructions are shown on Linux on x86-64 only".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(touches: &[Touch]) -> Vec<Line> {
        let line = |(offset, &touch)| Line {
            offset,
            text: format!("{touch:?}"),
            touch,
        };
        touches.iter().enumerate().map(line).collect()
    }

    #[test]
    fn the_window_is_marked_between_the_load_and_the_store() {
        let told = marked(&lines(&[
            Touch::Load,
            Touch::None,
            Touch::Store,
            Touch::None,
        ]));
        let told: Vec<&str> = told.lines().collect();
        let has = |number: usize, word: &str| assert!(told[number].contains(word), "{told:#?}");
        has(0, "load: ");
        has(1, "opens");
        has(2, "| the window");
        has(3, "closes");
        has(4, "store: ");
        assert_eq!((told.len(), told[5]), (6, "  +3  None"));
        // Nothing between them: it is open all the same.
        let told = marked(&lines(&[Touch::Load, Touch::Store]));
        assert!(told.contains("opens") && told.contains("closes"), "{told}");
    }

    #[test]
    fn what_is_one_instruction_is_atomic_only_if_it_says_so() {
        assert!(marked(&lines(&[Touch::Both])).contains("no `lock`"));
        assert!(marked(&lines(&[Touch::Atomic])).contains("as one"));
        // A debug build: nothing is claimed.
        let told = marked(&lines(&[Touch::Load, Touch::Call, Touch::Store]));
        assert_eq!(told.lines().count(), 3);
        assert!(!told.contains("window"), "{told}");
    }
}

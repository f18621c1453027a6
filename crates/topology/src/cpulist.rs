//! The grammar of CPU lists: `0,2-5`, as the kernel prints them.
//!
//! One parser serves both readers of the grammar: [`CpuSet`](crate::CpuSet), where order
//! and repetition mean nothing, and the explicit [`Order`](crate::Order), where they do.
//! The kernel's own parser (`bitmap_parselist`) also knows strides (`0-31:2/8`), but the
//! kernel never prints them in sysfs, so they are refused here.

use std::fmt;

/// The bound of CPU numbers, which lie in `0..MAX_CPUS`. The largest kernel configuration known
/// (x86-64 with `MAXSMP`) has 8,192; the bound keeps a garbage file from asking for gigabytes.
pub const MAX_CPUS: usize = 1 << 16;

/// The reason why a text is no list of CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CpuListError {
    /// An item is neither a number nor two numbers with a dash between them.
    NotANumber(String),
    /// A range whose end lies before its start.
    Reversed(String),
    /// A number of [`MAX_CPUS`] or more.
    TooLarge(String),
    /// More than [`MAX_CPUS`] entries in an ordered list.
    TooLong,
    /// No entry where at least one is needed.
    Empty,
}

impl fmt::Display for CpuListError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotANumber(item) if item.is_empty() => write!(f, "the list has an empty entry"),
            Self::NotANumber(item) => write!(
                f,
                "`{item}` is neither a CPU number nor a range such as 2-5"
            ),
            Self::Reversed(item) => write!(f, "the range `{item}` runs backwards"),
            Self::TooLarge(item) => {
                write!(
                    f,
                    "`{item}` is beyond the largest CPU number supported, {}",
                    MAX_CPUS - 1
                )
            }
            Self::TooLong => write!(f, "the list has more than {MAX_CPUS} entries"),
            Self::Empty => write!(f, "the list of CPUs is empty"),
        }
    }
}

impl std::error::Error for CpuListError {}

/// The items of `text` as inclusive ranges, in the order written. White space around the
/// list and its items is allowed (sysfs files end in a newline); an empty text has none.
pub(crate) fn ranges(
    text: &str,
) -> impl Iterator<Item = Result<(usize, usize), CpuListError>> + '_ {
    let text = text.trim();
    let items = if text.is_empty() {
        None
    } else {
        Some(text.split(','))
    };
    items.into_iter().flatten().map(|item| range(item.trim()))
}

fn range(item: &str) -> Result<(usize, usize), CpuListError> {
    let Some((from, to)) = item.split_once('-') else {
        let cpu = number(item, item)?;
        return Ok((cpu, cpu));
    };
    let (from, to) = (number(from, item)?, number(to, item)?);
    if from > to {
        return Err(CpuListError::Reversed(item.to_owned()));
    }
    Ok((from, to))
}

fn number(digits: &str, item: &str) -> Result<usize, CpuListError> {
    // `parse` alone would take a leading plus sign.
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(CpuListError::NotANumber(shown(item)));
    }
    // Digits only, so the one way to fail is to be too large.
    match digits.parse() {
        Ok(cpu) if cpu < MAX_CPUS => Ok(cpu),
        _ => Err(CpuListError::TooLarge(shown(item))),
    }
}

/// An item, shortened for an error message: garbage may be long.
fn shown(item: &str) -> String {
    const LONGEST: usize = 24;
    if item.chars().count() <= LONGEST {
        return item.to_owned();
    }
    item.chars().take(LONGEST).chain(['…']).collect()
}

/// Writes CPUs in the order given, runs of consecutive numbers as ranges.
pub(crate) fn write_runs(
    f: &mut fmt::Formatter<'_>,
    cpus: impl IntoIterator<Item = usize>,
) -> fmt::Result {
    let mut cpus = cpus.into_iter().peekable();
    let mut first = true;
    while let Some(from) = cpus.next() {
        let mut to = from;
        while let Some(next) = cpus.next_if(|&next| to.checked_add(1) == Some(next)) {
            to = next;
        }
        if !first {
            f.write_str(",")?;
        }
        first = false;
        if from == to {
            write!(f, "{from}")?;
        } else {
            write!(f, "{from}-{to}")?;
        }
    }
    Ok(())
}

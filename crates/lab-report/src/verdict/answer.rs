//! The answer: what to use here, in at most three sentences and one table.
//!
//! Everything else in a verdict is for those who doubt it, or have another load.

use super::advice::{Advice, Need};
use super::findings::{Comparison, Finding, Standing};
use super::judge::Judge;
use crate::data::{self, Subject};
use crate::method::{self, Form};
use crate::plot::significant;
use crate::table::grid::Grid;
use crate::words::{self, code};
use corelay_lab_measure::schema::{Mode, Run};
use std::collections::BTreeSet;

/// The method against which others are measured, because it is what most programs have.
const YARDSTICK: &str = "mutex";

/// The most rows of the table: the least contended ones are left out.
const MAX_ROWS: usize = 6;

/// The share of the fastest method's throughput at which a plainer one is as good.
const CLOSE: f64 = 0.9;

/// The method that async code has of delegation.
const TASKS: &str = "trust-async";

/// What to use for one workload.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Answer {
    /// At most three sentences: what to use where threads meet most, whether delegation pays, and
    /// what to use elsewhere.
    pub(crate) sentences: Vec<String>,
    /// The method to use by the number of variables and the program's need.
    pub(crate) table: Option<Grid>,
    /// The advice for async code and for workloads that were measured beside this one: a few words
    /// that say where, and a clause.
    pub(crate) elsewhere: Vec<(String, String)>,
    /// The advice for this workload as another one's answer gives it, if a clause can.
    pub(crate) aside: Option<(String, String)>,
    /// A sentence on how to read the table.
    pub(crate) reading: String,
    /// The methods in the table, each with its description.
    pub(crate) legend: Vec<(String, &'static str)>,
}

impl Answer {
    /// An answer that is one sentence, where there is nothing to choose.
    pub(super) fn of_sentence(sentence: String) -> Self {
        Self {
            sentences: vec![sentence],
            ..Self::default()
        }
    }

    /// Joins those of the later answers that have a clause to the first one.
    pub(super) fn join(mut answers: Vec<Self>) -> Vec<Self> {
        if answers.len() < 2 {
            return answers;
        }
        let mut others = answers.split_off(1);
        let asides = others.extract_if(.., |answer| answer.aside.is_some());
        for other in asides.collect::<Vec<_>>() {
            let first = &mut answers[0];
            // Before what async code uses.
            first.elsewhere.splice(0..0, other.aside);
            let known: BTreeSet<String> = first.legend.iter().map(|(n, _)| n.clone()).collect();
            let new = other
                .legend
                .into_iter()
                .filter(|(name, _)| !known.contains(name));
            first.legend.extend(new);
            first
                .legend
                .sort_by(|(a, _), (b, _)| method::rank(a).cmp(&method::rank(b)));
        }
        answers.extend(others);
        answers
    }
}

/// A method to use, and how many times as much as the yardstick it does.
#[derive(Clone, Debug, PartialEq)]
struct Pick {
    method: String,
    times: Option<f64>,
}

/// Neighbouring points with the same methods to use.
struct Row {
    vars: Vec<u64>,
    picks: Vec<Option<Pick>>,
}

/// The data that an answer draws on.
pub(super) struct Evidence<'a> {
    pub(super) subject: &'a Subject<'a>,
    pub(super) threads: usize,
    pub(super) runs: &'a [&'a Run],
    pub(super) judge: &'a Judge<'a>,
    pub(super) advice: &'a [Advice],
    pub(super) findings: &'a [Finding],
}

/// Answers for one workload; `None` if nothing can be advised.
pub(super) fn answer(e: &Evidence<'_>) -> Option<Answer> {
    let mode = e.judge.main_mode()?;
    let mut needs = Need::met(e.advice);
    // One instruction was measured by itself.
    needs.retain(|need| *need != Need::Instruction || e.subject.has(Form::Instruction));
    let rows = rows(e, mode, &needs);
    let now = needs.iter().position(|need| *need == Need::AnswerNow)?;
    let (hot, rest) = rows.split_first()?;
    let sentences = [
        hottest(e, hot, &needs, now),
        delegation(e, mode),
        elsewhere(e, rest, now),
    ];
    let from_tasks = from_tasks(e, mode, &hot.vars);
    let aside = rest
        .is_empty()
        .then(|| aside(e, hot, &needs, now))
        .flatten();
    let all = e.judge.modes();
    let of_mode = match mode {
        Mode::Unknown => String::new(),
        mode if all.len() > 1 => format!(", CPUs {}", words::mode(mode)),
        mode => format!(", {}", words::mode(mode)),
    };
    let head = std::iter::once(unit(e.subject, 2).to_owned());
    let table = Grid {
        title: format!("What to use here ({}{of_mode})", e.subject.name()),
        head: head
            .chain(needs.iter().map(|n| n.short().to_owned()))
            .collect(),
        rows: rows.iter().take(MAX_ROWS).map(Row::words).collect(),
    };
    let shown = rows.iter().take(MAX_ROWS).flat_map(|row| &row.picks);
    let named = shown.flatten().map(|pick| pick.method.as_str());
    let named: BTreeSet<&str> = named.chain(from_tasks.iter().map(|_| TASKS)).collect();
    let mut named: Vec<&str> = named.into_iter().collect();
    named.sort_by_key(|name| method::rank(name));
    let legend = named.into_iter().filter_map(|name| {
        let what = method::find(name)?.what;
        Some((name.to_owned(), what))
    });
    Some(Answer {
        sentences: sentences.into_iter().flatten().collect(),
        table: Some(table),
        elsewhere: from_tasks.into_iter().collect(),
        aside,
        reading: reading(&needs, rows.len()),
        legend: legend.collect(),
    })
}

fn reading(needs: &[Need], rows: usize) -> String {
    let mut text = format!(
        "× says how many times as much as a `{YARDSTICK}` it does. A plainer method stands where \
         another gains less than a tenth."
    );
    if needs.contains(&Need::AnswerLater) {
        text += " An answer that comes later costs a callback.";
    }
    if rows > MAX_ROWS {
        text += " Less contended points are left out.";
    }
    text
}

/// The unit of a point, singular or plural.
fn unit(subject: &Subject<'_>, n: u64) -> &'static str {
    match (subject.keys(), n) {
        (None, 1) => "variable",
        (None, _) => "variables",
        (Some(_), 1) => "shard",
        (Some(_), _) => "shards",
    }
}

/// Formats points for a sentence: `1 variable`, `64–4,096 variables`.
fn points(subject: &Subject<'_>, vars: &[u64]) -> String {
    let last = vars.last().copied().unwrap_or(0);
    format!("{} {}", words::range(vars), unit(subject, last))
}

/// The rows of the table: the levels that were advised on, joined where the advice is the same.
fn rows(e: &Evidence<'_>, mode: Mode, needs: &[Need]) -> Vec<Row> {
    let mut rows: Vec<(Vec<u64>, Vec<Option<String>>)> = Vec::new();
    for advice in e.advice {
        let plainest = |need: &Need| {
            let of_mode = advice.use_what[*need as usize].iter();
            let (_, leaders) = of_mode.clone().find(|(m, _)| *m == mode)?;
            let first = method::find(leaders.first()?)?.name;
            let is_close = |name: &&'static str| {
                let ratio = e.judge.middle(&advice.level.vars, mode, name, first);
                leaders.iter().any(|leader| leader == name) || ratio.is_some_and(|r| r > CLOSE)
            };
            // Candidates stand in the order of tables, the plainest first.
            let candidates = need.candidates().into_iter();
            let plainest = candidates
                .filter(is_close)
                .min_by_key(|name| method::rank(name));
            plainest.map(str::to_owned)
        };
        let picks: Vec<Option<String>> = needs.iter().map(plainest).collect();
        if picks.iter().all(Option::is_none) {
            continue;
        }
        match rows.last_mut() {
            Some((vars, last)) if *last == picks => vars.extend(&advice.level.vars),
            _ => rows.push((advice.level.vars.clone(), picks)),
        }
    }
    let row = |(vars, picks): (Vec<u64>, Vec<Option<String>>)| Row {
        picks: picks
            .into_iter()
            .map(|method| {
                let method = method?;
                let known = method::find(&method).filter(|m| m.name != YARDSTICK);
                let times = known.and_then(|m| e.judge.middle(&vars, mode, m.name, YARDSTICK));
                Some(Pick { method, times })
            })
            .collect(),
        vars,
    };
    rows.into_iter().map(row).collect()
}

impl Row {
    fn words(&self) -> Vec<String> {
        let pick = |pick: &Option<Pick>| match pick {
            None => "–".to_owned(),
            Some(Pick { method, times }) => match times {
                None => method.clone(),
                Some(times) => format!("{method} {}×", words::ratio_digits(*times)),
            },
        };
        let mut words = vec![words::range(&self.vars)];
        for (i, this) in self.picks.iter().enumerate() {
            // Not to wait changes nothing.
            let is_same = i > 0 && this.is_some() && *this == self.picks[i - 1];
            words.push(if is_same {
                "the same".to_owned()
            } else {
                pick(this)
            });
        }
        words
    }
}

impl Pick {
    /// The method, and how much faster it is than the yardstick.
    fn words(&self) -> String {
        let name = code(&self.method);
        match self.times {
            Some(times) => format!("{name}, {} as fast as a `{YARDSTICK}`", words::times(times)),
            None if self.method == YARDSTICK => {
                format!("a plain {name}: nothing that answers at once gains a tenth")
            }
            None => name,
        }
    }
}

/// What to use where threads meet most.
fn hottest(e: &Evidence<'_>, hot: &Row, needs: &[Need], now: usize) -> Option<String> {
    let pick = hot.picks[now].as_ref()?;
    let instruction = needs.iter().position(|need| *need == Need::Instruction);
    let instruction = instruction.and_then(|at| hot.picks[at].as_ref());
    let instruction = instruction.filter(|other| other.method != pick.method);
    let on = points(e.subject, &hot.vars);
    Some(match instruction {
        None => format!("On {on} use {}.", pick.words()),
        Some(one) => {
            let times = one
                .times
                .map_or(String::new(), |times| format!(" ({})", words::times(times)));
            let one = code(&one.method);
            format!(
                "On {on} use {one}{times} if one instruction does it, otherwise {}.",
                pick.words()
            )
        }
    })
}

/// Advises on async code where threads meet most: a lock, if its operation takes no longer than a task
/// that awaits its answer.
fn from_tasks(e: &Evidence<'_>, mode: Mode, hot: &[u64]) -> Option<(String, String)> {
    let vars = *hot.first()?;
    let ns = |name: &'static str| {
        let mops = e.judge.median(vars, mode, name)?;
        Some(1e3 * e.threads as f64 / mops)
    };
    let locks = method::METHODS.iter().filter(|m| m.is_lock());
    let times = locks.filter_map(|lock| Some((ns(lock.name)?, lock.name)));
    let (lock_ns, lock) = times.min_by(|a, b| a.0.total_cmp(&b.0))?;
    let task_ns = ns(TASKS)?;
    let [lock, task] = [lock, TASKS].map(code);
    let [lock_time, task_time] = [lock_ns, task_ns].map(significant);
    let clause = if lock_ns <= task_ns {
        format!(
            "{lock}, not held across any `.await`: an operation takes {lock_time} ns of a CPU; by {task}, \
             whose tasks await each answer, {task_time} ns"
        )
    } else {
        format!(
            "{task}: an operation takes {task_time} ns of a CPU, because many tasks' requests share a \
             round trip; by {lock} {lock_time} ns"
        )
    };
    Some(("async code".to_owned(), clause))
}

/// Advises on this workload in a clause, for another one's answer; `None` if it is not a structure.
fn aside(e: &Evidence<'_>, row: &Row, needs: &[Need], now: usize) -> Option<(String, String)> {
    let (keys, updates) = e.subject.keys()?;
    let pick = row.picks[now].as_ref()?;
    let what = match e.subject.workload {
        "hash" => "map",
        other => other,
    };
    let keys = words::count(keys, "key", "keys");
    let clause = match pick.times {
        Some(times) => format!(
            "{}, {} as fast as a `{YARDSTICK}` around it",
            code(&pick.method),
            words::times(times)
        ),
        None => pick.words(),
    };
    let parts = match method::takes_any_workload(&pick.method) {
        true => "",
        false => ", because threads meet at no lock around the whole",
    };
    let later = needs.iter().zip(&row.picks).filter_map(|(need, other)| {
        let other = other.as_ref().filter(|other| other.method != pick.method)?;
        let times = other
            .times
            .map_or(String::new(), |times| format!(" ({})", words::times(times)));
        (*need > Need::AnswerNow)
            .then(|| format!("; {}, {}{times}", need.short(), code(&other.method)))
    });
    let later: String = later.collect();
    Some((
        format!("{what} of {keys}, {updates}\u{a0}% updates"),
        format!("{clause}{parts}{later}"),
    ))
}

/// What to use at the other points.
fn elsewhere(e: &Evidence<'_>, rest: &[Row], now: usize) -> Option<String> {
    let mut groups: Vec<(Vec<u64>, &Pick)> = Vec::new();
    for row in rest {
        let Some(pick) = &row.picks[now] else {
            continue;
        };
        match groups.last_mut() {
            Some((vars, last)) if last.method == pick.method => vars.extend(&row.vars),
            _ => groups.push((row.vars.clone(), pick)),
        }
    }
    let on = |vars: &[u64]| points(e.subject, vars);
    match groups.as_slice() {
        [] => None,
        [(vars, pick)] if pick.method == YARDSTICK => Some(format!(
            "On {} the methods hardly differ: a plain `{YARDSTICK}` will do.",
            on(vars)
        )),
        [(vars, pick)] => Some(format!("On {} use {}.", on(vars), code(&pick.method))),
        several => {
            let words = several
                .iter()
                .take(3)
                .map(|(vars, pick)| format!("{} on {}", code(&pick.method), words::range(vars)));
            let words: Vec<String> = words.collect();
            Some(format!(
                "With more {} use {}.",
                unit(e.subject, 2),
                words::and(&words)
            ))
        }
    }
}

/// Whether delegation pays, and why.
fn delegation(e: &Evidence<'_>, mode: Mode) -> Option<String> {
    let of = |comparison, standing| {
        let mut found = e.findings.iter().filter(move |f| {
            f.mode == mode && f.comparison == comparison && f.standing() == standing
        });
        move || found.next()
    };
    let on = |finding: &Finding| points(e.subject, &finding.level.vars);
    let far_ahead = |finding: &Finding| {
        let ratio = match finding.standing() {
            Standing::Loses => finding.ratio.ratio.recip(),
            _ => finding.ratio.ratio,
        };
        words::times(ratio)
    };
    if let Some(wins) = of(Comparison::Waiting, Standing::Wins)() {
        return Some(format!(
            "Delegation pays: on {} {} does {} as much as the best lock or channel, {}, because the \
             data stay in one core's cache and only requests travel.",
            on(wins),
            code(&wins.ours),
            far_ahead(wins),
            code(&wins.rival)
        ));
    }
    if let Some(wins) = of(Comparison::LaterAgainstWaiting, Standing::Wins)() {
        return Some(format!(
            "Delegation pays only where answers may come later: on {} {} does {} as much as the best \
             lock or channel, {}, because many requests share a round trip.",
            on(wins),
            code(&wins.ours),
            far_ahead(wins),
            code(&wins.rival)
        ));
    }
    if let Some(loses) = of(Comparison::Waiting, Standing::Loses)() {
        return Some(format!(
            "Delegation does not pay here: on {} {} does {} as much as {}, because {}.",
            on(loses),
            code(&loses.rival),
            far_ahead(loses),
            code(&loses.ours),
            slower(e, mode, loses)
        ));
    }
    let mut close = e.findings.iter().filter(|f| f.mode == mode);
    close.next().map(|_| {
        "Delegation is neither measurably faster nor slower than the best lock or channel here."
            .to_owned()
    })
}

/// Why a call of delegation takes longer than its rival's operation: the round trip, where that is
/// longer than the whole operation; otherwise only the times of both.
fn slower(e: &Evidence<'_>, mode: Mode, loses: &Finding) -> String {
    let trip = data::round_trip(e.runs, mode);
    let each = |name: &str| {
        let method = method::find(name)?.name;
        let mops = e.judge.median(*loses.level.vars.first()?, mode, method)?;
        let run = e.runs.iter().find(|run| run.method == method);
        let servers = run.map_or(0, |run| run.params.servers);
        Some(1e3 * e.threads.saturating_sub(servers).max(1) as f64 / mops)
    };
    because(
        trip,
        each(&loses.ours),
        each(&loses.rival),
        &code(&loses.rival),
    )
}

/// The clause of [`slower`], from the times of a round trip, a call and a rival's operation, in
/// nanoseconds.
fn because(trip: Option<f64>, call: Option<f64>, operation: Option<f64>, rival: &str) -> String {
    let by_rival = |ns| format!(", and an operation by {rival} takes {} ns", significant(ns));
    let of_trip = trip.map_or(String::new(), |ns| format!(" of {} ns", significant(ns)));
    match (trip, call, operation) {
        (Some(trip), Some(call), Some(operation)) if operation >= trip => format!(
            "a call takes {} ns with its round trip{of_trip}{}",
            significant(call),
            by_rival(operation)
        ),
        _ => format!(
            "a call waits for a round trip{of_trip}{}",
            operation.map_or(String::new(), by_rival)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_trip_is_blamed_only_if_it_is_longer_than_the_rivals_operation() {
        let told = |operation| because(Some(110.0), Some(300.0), Some(operation), "`mutex`");
        assert_eq!(
            told(18.0),
            "a call waits for a round trip of 110 ns, and an operation by `mutex` takes 18.0 ns"
        );
        assert_eq!(
            told(200.0),
            "a call takes 300 ns with its round trip of 110 ns, and an operation by `mutex` takes 200 ns"
        );
        assert_eq!(
            because(None, None, None, "x"),
            "a call waits for a round trip"
        );
    }
}

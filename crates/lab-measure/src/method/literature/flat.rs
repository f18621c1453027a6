//! Flat delegation on the thesis's request lines, by its five policies.
//!
//! On the command line `flat-lines` has the policy `queue` and 16 lines for each pair of members;
//! `flat-lines:POLICY` has another policy, `flat-lines:POLICYxN` N lines.
//!
//! Each member runs on a thread of the crew, which makes its objects and lines. At the end of each
//! slice a member serves until all members are done.

use super::lines::{Issues, check_memory, closed_loop, on_schedule, redeem};
use crate::method::contender::Parameters;
use crate::method::flat::BOUND;
use crate::method::{Build, Contender, Kind, Method, SetupLimit};
use crate::schema::{ClientCounts, Trustee};
use crate::workload::operation::Workload;
use crate::workload::point::Point;
use crate::workload::random::Client;
use corelay_literature::{Asked, AsyncLines, FlatPolicy, Member, Place, Shape};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

const NAME: &str = "flat-lines";

/// The policies by the names that they have on the command line.
const POLICIES: [(&str, FlatPolicy); 5] = [
    ("queue", FlatPolicy::Queue),
    ("blocked", FlatPolicy::Blocked),
    ("fast-path", FlatPolicy::FastPath),
    ("bound", FlatPolicy::Bound(BOUND)),
    ("doorbell", FlatPolicy::Doorbell),
];

/// The method `flat-lines`.
pub const fn flat_lines<W: Workload>() -> Method<W> {
    Method {
        window: 48,
        bytes_per_var: super::bytes_per_var::<W>(),
        parameters: Some(Parameters {
            forms: &[
                (
                    "flat-lines:POLICY",
                    "queue, blocked, fast-path, bound or doorbell; queue by default",
                ),
                ("flat-lines:POLICYxN", "and N request lines; 16 by default"),
            ],
            read,
        }),
        ..Method::new(NAME, Kind::Flat, build::<W, 0>)
    }
}

/// The method with the policy and the lines that `parameters` describe.
fn read<W: Workload>(parameters: &str) -> Result<Method<W>, String> {
    let builds: [Build<W>; 5] = [
        build::<W, 0>,
        build::<W, 1>,
        build::<W, 2>,
        build::<W, 3>,
        build::<W, 4>,
    ];
    let is_known = |name: &str| POLICIES.iter().any(|known| known.0 == name);
    let both = parameters.rsplit_once('x');
    let (policy, lines) = both
        .filter(|(policy, _)| is_known(policy))
        .unwrap_or((parameters, "16"));
    let wrong = || format!("write {NAME}:POLICY or {NAME}:POLICYxN, such as {NAME}:blockedx4");
    let position = POLICIES.iter().position(|known| known.0 == policy);
    let position = position.ok_or_else(wrong)?;
    let is_number = !lines.is_empty() && lines.bytes().all(|b| b.is_ascii_digit());
    let lines = lines.parse().ok().filter(|_| is_number);
    let lines: usize = lines.ok_or_else(wrong)?;
    let shape = match POLICIES[position].1 {
        FlatPolicy::Queue => Shape::queue(lines, lines.saturating_mul(2)),
        _ => Shape::direct(lines),
    };
    let shape = shape.map_err(|why| format!("{why}; {}", wrong()))?;
    Ok(Method {
        window: shape.lines() + shape.pending().unwrap_or(0),
        lines: shape,
        build: builds[position],
        ..flat_lines()
    })
}

/// Sets up the method with policy number `POLICY`.
fn build<W: Workload, const POLICY: usize>(
    workload: W,
    point: &Point,
    _: &SetupLimit,
) -> Result<Box<dyn Contender>, String> {
    let policy = POLICIES[POLICY].1;
    match point.load {
        None => Flat::start(workload, policy, point, |workload, client, member| {
            closed_loop(workload, client, member)
        }),
        Some(_) => Flat::start(workload, policy, point, |workload, client, member| {
            on_schedule(workload, client, member, redeem)
        }),
    }
}

impl<T: Send, C: FnOnce(u64)> Issues<T, C> for Member<T, C> {
    #[inline]
    fn issue<O>(&mut self, var: usize, operation: O, then: C)
    where
        O: FnOnce(&mut T) -> u64 + Send + 'static,
    {
        Member::issue(self, var, operation, then);
    }

    fn look(&mut self) {
        self.poll();
    }

    fn barrier(&mut self) {
        Member::barrier(self);
    }
}

/// A member's place between slices.
type Kept<T, C> = Mutex<Option<Place<T, C>>>;

struct Flat<W: Workload, C: FnOnce(u64), D> {
    workload: W,
    delegation: AsyncLines<W::Object, C>,
    /// The members' places. The crew's thread of that number takes each for a slice.
    places: Vec<Kept<W::Object, C>>,
    /// The loop of a member; returns the number of its operations.
    drive: D,
}

impl<W, C, D> Flat<W, C, D>
where
    W: Workload,
    C: FnOnce(u64) + 'static,
    D: Fn(W, Client, &mut Member<W::Object, C>) -> u64 + Send + Sync + 'static,
{
    fn start(
        workload: W,
        policy: FlatPolicy,
        point: &Point,
        drive: D,
    ) -> Result<Box<dyn Contender>, String> {
        check_memory(point.lines, point.threads * point.threads)?;
        let (lines, vars) = (point.lines.lines(), point.vars as usize);
        let make = move |_| workload.object();
        let team = Member::team(policy, lines, point.threads, vars, make);
        let (delegation, places) = team.map_err(|why| why.to_string())?;
        let kept = |place| Mutex::new(Some(place));
        Ok(Box::new(Self {
            workload,
            delegation,
            places: places.into_iter().map(kept).collect(),
            drive,
        }))
    }
}

impl<W, C, D> Contender for Flat<W, C, D>
where
    W: Workload,
    C: FnOnce(u64),
    D: Fn(W, Client, &mut Member<W::Object, C>) -> u64 + Send + Sync,
{
    fn clients(&self) -> Range<usize> {
        0..self.places.len()
    }

    fn client(&self, client: Client) -> u64 {
        let kept = &self.places[client.index];
        let place = kept.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut member = place.expect("a member runs on one thread").take();
        let count = (self.drive)(self.workload, client, &mut member);
        let place = member.leave();
        *kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(place);
        count
    }

    fn total(&self) -> Result<u64, String> {
        super::total(self.workload, &self.delegation)
    }

    fn end(&mut self) -> Vec<Trustee> {
        let places = self.places.drain(..).filter_map(|place| {
            let place = place.into_inner();
            place.unwrap_or_else(PoisonError::into_inner)
        });
        let trustee = |place: Place<W::Object, C>| Trustee {
            asked: Some(summed(place.asked())),
            ..Trustee::from(&place.served())
        };
        places.map(trustee).collect()
    }
}

/// The counts of a member's requests to all members.
fn summed(asked: &[Asked]) -> ClientCounts {
    let mut sum = Asked::default();
    asked.iter().for_each(|asked| sum += *asked);
    sum.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::plan::Item;
    use crate::measure::rig::Rig;
    use crate::measure::session::{Session, Timing};
    use crate::workload::fetch_add::FetchAdd;
    use std::sync::Arc;
    use std::time::Duration;

    #[test]
    fn parameters_are_parsed() {
        let method = flat_lines::<FetchAdd>();
        let read = |text| {
            let read = method.with_parameters(text);
            read.map(|read| read.map(|m| (m.lines.lines(), m.lines.pending(), m.window(1))))
        };
        assert_eq!(read("flat-lines:queue"), Some(Ok((16, Some(32), 48))));
        assert_eq!(read("flat-lines:queuex4"), Some(Ok((4, Some(8), 12))));
        assert_eq!(read("flat-lines:fast-path"), Some(Ok((16, None, 16))));
        assert_eq!(read("flat-lines:boundx1"), Some(Ok((1, None, 1))));
        for text in [
            "",
            "x4",
            "queuex0",
            "queuex",
            "queuex+4",
            "greedy",
            "boundx1025",
        ] {
            let wrong = read(String::leak(format!("flat-lines:{text}"))).unwrap();
            assert!(wrong.as_ref().unwrap_err().contains("such as"), "{wrong:?}");
        }
    }

    #[test]
    fn all_policies_are_right() {
        for threads in [1, 3] {
            let mut rig = Rig::new(&vec![None; threads], &[], "test", Arc::default()).unwrap();
            let mut session = Session::new();
            for (policy, _) in POLICIES {
                let item = Item {
                    method: read(policy).unwrap(),
                    point: Point {
                        vars: threads as u64 + 1,
                        ..Point::small(threads)
                    },
                    notes: vec![],
                };
                session.add(item, &SetupLimit::default()).unwrap();
            }
            let timing = Timing::of(Duration::from_millis(5));
            session.round(&mut rig, timing, None, || {});
            for run in session.finish(&rig, timing) {
                assert!(run.correct && run.median_mops > 0.0, "{run:?}");
                assert_eq!(run.trustees.len(), threads);
            }
        }
    }
}

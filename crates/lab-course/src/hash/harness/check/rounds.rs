//! Short rounds of calls by threads that take turns at every lock operation of the table.
//!
//! The order of the turns is drawn anew for each round. It does not depend on the number of CPUs
//! or on what else runs on them, and it stops a thread in places where the system would seldom
//! stop it: between the two lock operations of a growth that only every 200th growth has, for
//! instance. Every answer is judged, and so is the table's content after each round.
//!
//! ```text
//!   thread 0  insert 7 ──┐ lock, unlock │         stopped          │ lock, unlock  ┌── get 7
//!   thread 1             └──────────────┤ get 7: None, get 3: 30   ├───────────────┘
//! ```

use crate::explain::explains;
use crate::growth::Start;
use crate::keys::Keys;
use crate::messages::{Kind, fault};
use crate::plan::{Plan, Round};
use crate::quiet;
use crate::record::{Ask, Call, write};
use crate::table::Table;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, RwLock};
use std::time::{Duration, Instant};
use turns::{Dice, Policy, Turns};

/// Rounds of the same threads, at most. A fault may begin at a thread's thousandth call.
const BATCH: usize = 1_200;
/// Rounds of one table, if it lasts.
const LASTING: usize = 150;
/// The fewest batches, and the fewest rounds of each, however slow the machine.
const FEWEST: usize = 6;
/// The fewest rounds in all, if they can be had in time.
const WANTED: usize = 120_000;
/// Time for a batch.
const BATCH_TIME: Duration = Duration::from_millis(250);

/// The number of rounds and calls that were played.
#[derive(Clone, Copy, Debug, Default)]
pub struct Played {
    pub rounds: usize,
    pub calls: usize,
}

/// Plays rounds for a time, and longer if they are few, but not longer than `longest`. A fault's history is written to `path`.
pub fn play(time: Duration, longest: Duration, dice: &mut Dice, path: &Path) -> Played {
    let began = Instant::now();
    let starts = starts(dice);
    let mut played = Played::default();
    let mut batch = 0;
    let is_over = |rounds, batch| match rounds < WANTED {
        true => began.elapsed() > longest && batch >= FEWEST,
        false => began.elapsed() > time,
    };
    while !is_over(played.rounds, batch) {
        let mut threads = dice.of(&[2, 3, 3, 3, 4]);
        let mut most = BATCH;
        // Some tables share out a few of something by the number of the thread.
        if dice.one_in(8) {
            (threads, most) = dice.of(&[(9, 150), (12, 100), (17, 100), (33, 40), (70, 20)]);
        }
        let game = Game {
            turns: Arc::new(Turns::new(threads, deadlock)),
            // The first two moments are kept for the insertion before a round.
            now: AtomicU64::new(2),
            round: RwLock::default(),
            made: (0..threads).map(|_| Mutex::default()).collect(),
            host: Mutex::new(Host {
                dice: Dice::new(dice.next()),
                starts: starts.clone(),
                most,
                over: Instant::now() + BATCH_TIME,
                lasting: false,
                world: None,
                calls: 0,
                steps: 40,
                played: Played::default(),
                path: path.to_owned(),
            }),
        };
        std::thread::scope(|scope| {
            for me in 0..threads {
                let game = &game;
                scope.spawn(move || turns::in_turns(&game.turns, me, || game.play(me)));
            }
        });
        let host = game.host.into_inner().expect("a panic ends the program");
        played.rounds += host.played.rounds;
        played.calls += host.played.calls;
        batch += 1;
    }
    played
}

fn starts(dice: &mut Dice) -> Vec<Start> {
    let mut all = Vec::new();
    for capacity in [0, 1, 4, 16, 64] {
        for _ in 0..2 {
            all.push(Start::find(capacity, Keys::any(dice, true), true));
        }
        all.push(Start::find(capacity, Keys::any(dice, false), false));
        all.push(Start::find(capacity, Keys::Dense, true));
    }
    all
}

fn deadlock() -> ! {
    fault(
        Kind::Hang,
        "each thread waits for a lock that is never released: they wait for each other, or one \
         takes a lock that it has already",
    )
}

/// The state that the threads of a batch share.
struct Game {
    turns: Arc<Turns>,
    now: AtomicU64,
    round: RwLock<Option<Arc<Round>>>,
    /// The calls of this round, by thread.
    made: Vec<Mutex<Vec<Call>>>,
    host: Mutex<Host>,
}

/// The judge of the rounds. The last thread of a round takes this part.
struct Host {
    dice: Dice,
    starts: Vec<Start>,
    /// The most rounds of the batch, and the moment after which it ends.
    most: usize,
    over: Instant,
    /// Whether the table stays for the next rounds.
    lasting: bool,
    world: Option<World>,
    /// The number of calls of each thread in this round.
    calls: usize,
    /// The usual number of points of a round.
    steps: u64,
    played: Played,
    path: PathBuf,
}

/// A table, and what should be in it.
struct World {
    table: Arc<Table>,
    keys: Keys,
    /// The values by the numbers of their keys.
    content: BTreeMap<u64, u64>,
    /// The first number that was never used.
    fresh: u64,
}

impl Game {
    fn play(&self, me: usize) {
        loop {
            if self.turns.finish(me) {
                turns::without_points(|| self.judge_and_prepare());
                let policy = {
                    let mut host = self.host();
                    let dice = Dice::new(host.dice.next());
                    Policy::new(dice, self.made.len(), host.calls, host.steps)
                };
                self.turns.begin(me, policy);
            }
            let round = self.round.read().expect("a panic ends the program").clone();
            let Some(round) = round else {
                self.turns.leave(me);
                return;
            };
            turns::new_round();
            let mut made = Vec::with_capacity(8);
            for &ask in &round.asks[me] {
                turns::between_calls();
                made.push(Call::make(&round.table, ask, &self.now));
            }
            turns::between_calls();
            *self.made[me].lock().expect("a panic ends the program") = made;
        }
    }

    fn host(&self) -> MutexGuard<'_, Host> {
        self.host.lock().expect("a panic ends the program")
    }

    fn judge_and_prepare(&self) {
        let mut host = self.host();
        let played = self.round.write().expect("a panic ends the program").take();
        if let Some(round) = played {
            host.steps = (7 * host.steps + self.turns.steps()) / 8;
            host.played.rounds += 1;
            let take = |made: &Mutex<Vec<Call>>| std::mem::take(&mut *made.lock().unwrap());
            let made: Vec<Vec<Call>> = self.made.iter().map(take).collect();
            host.judge(&round, made, &self.now);
        }
        let rounds = host.played.rounds;
        if rounds < FEWEST || rounds < host.most && Instant::now() < host.over {
            if rounds % LASTING == 0 {
                host.lasting = host.dice.one_in(3);
                host.world = None;
            }
            let next = host.next(self.made.len());
            *self.round.write().expect("a panic ends the program") = Some(Arc::new(next));
        }
    }
}

impl Host {
    /// Judges each key by itself, and takes over what is in the table now.
    fn judge(&mut self, round: &Round, mut made: Vec<Vec<Call>>, now: &AtomicU64) {
        self.played.calls += made.iter().map(Vec::len).sum::<usize>();
        let world = self.world.as_mut().expect("a round has a table");
        let mut numbers: BTreeMap<u64, u64> = BTreeMap::new();
        for &number in &round.numbers {
            numbers.insert(world.keys.of(number), number);
        }
        // What is in the table in the end belongs to the history.
        for &key in numbers.keys() {
            made[0].push(Call::make(&world.table, Ask::Get(key), now));
        }
        let mut calls: BTreeMap<u64, Vec<Call>> = BTreeMap::new();
        for call in made.iter().flatten() {
            calls.entry(call.ask.key()).or_default().push(*call);
        }
        for (key, mut calls) in calls {
            calls.sort_unstable_by_key(|call| call.invoked);
            let number = numbers[&key];
            let initial = world.content.get(&number).copied();
            if explains(initial, &calls) == Some(false) {
                self.unexplained(key, initial, &made);
            }
            let last = calls.last().expect("the last look at the key");
            match last.answer {
                Some(value) => world.content.insert(number, value),
                None => world.content.remove(&number),
            };
        }
        let size = world.content.len();
        quiet::len_is(&world.table, size);
        let look = match size {
            0..=40 => 2,
            41..=400 => 12,
            _ => 60,
        };
        if self.dice.one_in(look) {
            let keys = world.content.keys().map(|&number| world.keys.of(number));
            quiet::keys_are(&world.table, &keys.collect::<BTreeSet<u64>>());
        }
    }

    /// Leaves the history of a key for the lab, and ends the check.
    fn unexplained(&self, key: u64, initial: Option<u64>, made: &[Vec<Call>]) -> ! {
        let of_key = |calls: &Vec<Call>| {
            let calls = calls.iter().filter(|call| call.ask.key() == key);
            calls.copied().collect::<Vec<_>>()
        };
        let mut history: Vec<Vec<Call>> = made.iter().map(of_key).collect();
        if let Some(value) = initial {
            let before = Call {
                ask: Ask::Insert(key, value),
                invoked: 0,
                returned: 1,
                answer: None,
            };
            history[0].insert(0, before);
        }
        write(&self.path, &history).expect("the lab's folder can be written");
        let what = format!("no order of the calls of key {key} explains their answers");
        fault(Kind::Order, &what)
    }

    /// Prepares a round: a table with keys in it, and the calls of each thread.
    fn next(&mut self, threads: usize) -> Round {
        let dice = &mut self.dice;
        if self.world.is_none() || !self.lasting {
            let start = &self.starts[dice.below(self.starts.len() as u64) as usize];
            let size = start.size(dice);
            let mut world = World {
                table: Arc::new(Table::with_capacity(start.capacity)),
                keys: start.keys,
                content: BTreeMap::new(),
                fresh: 0,
            };
            world.fill(size);
            self.world = Some(world);
        } else if let Some(world) = &mut self.world
            && dice.one_in(12)
        {
            match dice.below(3) {
                0 => world.empty(dice),
                _ => world.fill(1 + dice.below(60)),
            }
        }
        let world = self.world.as_mut().expect("it was made");
        let mut plan = Plan::new(dice, world.keys, &world.content, world.fresh, threads);
        let asks = plan.asks();
        self.calls = asks[0].len();
        world.fresh = plan.fresh;
        Round {
            table: Arc::clone(&world.table),
            asks,
            numbers: plan.numbers,
        }
    }
}

impl World {
    fn fill(&mut self, more: u64) {
        for number in self.fresh..self.fresh + more {
            let (key, value) = (self.keys.of(number), number << 20);
            crate::alone::answers("insert of a new key", self.table.insert(key, value), None);
            self.content.insert(number, value);
        }
        self.fresh += more;
    }

    /// Removes all keys but a few.
    fn empty(&mut self, dice: &mut Dice) {
        let keep = dice.below(10) as usize;
        while self.content.len() > keep
            && let Some((number, value)) = self.content.pop_first()
        {
            let removed = self.table.remove(self.keys.of(number));
            crate::alone::answers("remove of a key that is there", removed, Some(value));
        }
    }
}

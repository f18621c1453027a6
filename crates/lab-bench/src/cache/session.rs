//! A session: servers under load for short blocks, in turns if there are several.
//!
//! ```text
//! A  | settle | counted | drain |                          | settle | …
//! B                             | settle | counted | drain |
//! probe   ▲                  ▲                          ▲
//! ```
//! While one server is measured, the others are idle: their connections are open and nothing is in
//! flight on them. A block begins with a time that is not counted, because the caches of the server's CPU
//! hold what the other one has left.

use super::Failure;
use super::address::{Address, Blocking};
use super::drive::{Driven, Driver, Stopped, unreachable};
use super::hello;
use super::options::Options;
use super::process::Process;
use super::request::Requests;
use super::tally::Latencies;
use corelay_lab_measure::measure::mode::Bracket;
use corelay_lab_measure::measure::rig::Rig;
use corelay_lab_measure::schema::cache::{CacheBlock, Counts, Filled};
use corelay_sync::facade::atomic::AtomicBool;
use corelay_topology::CpuSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The longest time at the start of a block that is not counted.
const SETTLE: Duration = Duration::from_millis(50);

/// Files that a process has open beside its connections, or a few more.
const OTHER_FILES: u64 = 64;

/// A server to measure.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// A server that is running.
    Running(Address),
    /// The command that starts a server.
    Command(String),
}

/// The servers and the load of a session.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The servers, measured in turn.
    pub targets: Vec<Target>,
    /// The CPUs of the servers that are started.
    pub server_cpus: CpuSet,
    /// The load on each server.
    pub options: Options,
    /// The counted length of a block.
    pub block: Duration,
    /// The first member of the rig's crew that is a load thread.
    pub first_member: usize,
}

/// Servers and their connections.
#[derive(Debug)]
pub struct Session {
    pub(super) servers: Vec<Server>,
    pub(super) plan: Plan,
}

/// A server, its connections, and the blocks measured so far.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) label: String,
    pub(super) address: Address,
    pub(super) version: String,
    pub(super) filled: Option<Filled>,
    pub(super) taken: Vec<Taken>,
    pub(super) drivers: Vec<Arc<Mutex<Driver>>>,
    _idle: Vec<Blocking>,
    // Dropped after the connections.
    pub(super) process: Option<Process>,
}

/// A block that was measured.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) block: CacheBlock,
    pub(super) per_thread: Vec<u64>,
    /// Operations per second of all threads.
    pub(super) rate: f64,
    pub(super) latencies: Vec<Latencies>,
    pub(super) bracket: Option<Bracket>,
}

/// The way in which a phase ended that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// All of it was done.
    Done,
    /// Ctrl-C ended it early.
    Interrupted,
}

impl Session {
    /// Starts servers and opens all connections.
    ///
    /// # Errors
    /// A server cannot be started or reached, or does not speak the protocol.
    pub fn open(plan: Plan) -> Result<Self, Failure> {
        let options = &plan.options;
        let of_each = options.connections + options.idle_connections;
        allow_files((of_each * plan.targets.len()) as u64 + OTHER_FILES);
        let requests = Arc::new(Requests::new(options.key_size, options.value_size));
        let mut servers: Vec<Server> = Vec::new();
        for target in &plan.targets {
            let mut server = Server::open(target, &plan, &requests)?;
            if servers.iter().any(|other| other.label == server.label) {
                server.label += " (2)";
            }
            servers.push(server);
        }
        Ok(Self { servers, plan })
    }

    /// Sets each key once, on each server.
    ///
    /// # Errors
    /// The server is at fault.
    pub fn fill(&mut self, rig: &Rig, mut tick: impl FnMut()) -> Result<Phase, Failure> {
        let first = self.plan.first_member;
        for server in &mut self.servers {
            let start = Instant::now();
            let drive = |driver: &mut Driver, flag: &AtomicBool| driver.fill(flag);
            let Some(driven) = server.on_all(rig, first, drive)? else {
                return Ok(Phase::Interrupted);
            };
            let counts: Counts = driven.iter().map(|one| one.counts).sum();
            server.filled = Some(Filled {
                stored: counts.refills - counts.refused,
                refused: counts.refused,
                secs: start.elapsed().as_secs_f64(),
            });
            tick();
        }
        Ok(Phase::Done)
    }

    /// Measures one block of each server.
    ///
    /// # Errors
    /// The server is at fault.
    pub fn round(&mut self, rig: &mut Rig, mut tick: impl FnMut()) -> Result<Phase, Failure> {
        let length = self.plan.block;
        let settle = SETTLE.min(length / 10);
        let mut before = rig.distance();
        for server in &mut self.servers {
            if rig.is_interrupted() {
                return Ok(Phase::Interrupted);
            }
            let cpu_before = server.process.as_ref().and_then(Process::cpu_s);
            let start = Instant::now();
            let drive =
                move |driver: &mut Driver, flag: &AtomicBool| driver.drive(settle, length, flag);
            let Some(driven) = server.on_all(rig, self.plan.first_member, drive)? else {
                return Ok(Phase::Interrupted);
            };
            let wall_s = start.elapsed().as_secs_f64();
            let cpu_after = server.process.as_ref().and_then(Process::cpu_s);
            let after = rig.distance();
            // The share of the whole block is that of its counted part: the load is the same.
            let share = cpu_after
                .zip(cpu_before)
                .map(|(to, from)| (to - from) / wall_s);
            server
                .taken
                .push(Taken::of(driven, share, rig.bracket(before, after)));
            before = after;
            tick();
        }
        Ok(Phase::Done)
    }
}

impl Server {
    fn open(target: &Target, plan: &Plan, requests: &Arc<Requests>) -> Result<Self, Failure> {
        let (label, process, address) = match target {
            Target::Running(address) => (address.to_string(), None, address.clone()),
            Target::Command(command) => {
                let process = Process::start(command, &plan.server_cpus)?;
                let address = process.address().clone();
                (command.clone(), Some(process), address)
            }
        };
        let options = &plan.options;
        let version = hello::version(&address).map_err(Failure::Server)?;
        let mut drivers = Vec::new();
        for thread in 0..options.threads {
            let driver = Driver::open(&address, options, requests, thread);
            drivers.push(Arc::new(Mutex::new(driver.map_err(Failure::Server)?)));
        }
        let mut idle = Vec::with_capacity(options.idle_connections);
        for _ in 0..options.idle_connections {
            let connection = address.connect();
            idle.push(connection.map_err(|e| Failure::Server(unreachable(&address, &e)))?);
        }
        Ok(Self {
            label,
            address,
            version,
            filled: None,
            taken: Vec::new(),
            drivers,
            _idle: idle,
            process,
        })
    }

    /// Runs `job` on all load threads together; `None` if Ctrl-C ended it.
    fn on_all(
        &self,
        rig: &Rig,
        first: usize,
        job: impl Fn(&mut Driver, &AtomicBool) -> Result<Driven, Stopped> + Send + Sync + 'static,
    ) -> Result<Option<Vec<Driven>>, Failure> {
        let (drivers, flag) = (self.drivers.clone(), Arc::clone(&rig.interrupted));
        let members = first..first + drivers.len();
        let running = rig.crew.start(members, move |member| {
            let mut driver = drivers[member - first]
                .lock()
                .unwrap_or_else(|e| e.into_inner());
            job(&mut driver, &flag)
        });
        let mut all = Vec::new();
        for outcome in running.join() {
            match outcome {
                Ok(Ok(driven)) => all.push(driven),
                Ok(Err(Stopped::Interrupted)) => return Ok(None),
                Ok(Err(Stopped::Failed(why))) => {
                    // Ctrl-C in a terminal ends a server that was started from it, too.
                    std::thread::sleep(Duration::from_millis(50));
                    if rig.is_interrupted() {
                        return Ok(None);
                    }
                    return Err(Failure::Server(format!("{}: {why}", self.label)));
                }
                Err(panic) => {
                    let why = format!("{}: a load thread panicked: {panic}", self.label);
                    return Err(Failure::Server(why));
                }
            }
        }
        Ok(Some(all))
    }
}

impl Taken {
    fn of(driven: Vec<Driven>, server_share: Option<f64>, bracket: Option<Bracket>) -> Self {
        let threads = driven.len().max(1) as f64;
        let counts: Counts = driven.iter().map(|one| one.counts).sum();
        let secs = driven.iter().map(|one| one.secs).sum::<f64>() / threads;
        let rate = |one: &Driven| one.counts.operations() as f64 / one.secs;
        let latencies: Vec<Latencies> = driven.iter().map(|one| one.latencies.clone()).collect();
        Self {
            block: CacheBlock {
                secs,
                counts,
                latency_ns: Latencies::percentiles(&latencies),
                server_cpu_s: server_share.map(|share| share * secs),
                load_cpu_s: driven.iter().map(|one| one.cpu_s).sum(),
                waiting_s: driven.iter().map(|one| one.waiting_s).sum(),
            },
            per_thread: driven.iter().map(|one| one.counts.operations()).collect(),
            rate: driven.iter().map(rate).sum(),
            latencies,
            bracket,
        }
    }
}

/// Lets this process open so many files, if the system permits it.
fn allow_files(files: u64) {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, getrlimit, setrlimit};
        let mut limit = getrlimit(Resource::Nofile);
        if limit.current.is_some_and(|current| current < files) {
            let most = limit.maximum.unwrap_or(u64::MAX);
            limit.current = Some(files.min(most));
            // Without that, opening a connection says what is missing.
            let _ = setrlimit(Resource::Nofile, limit);
        }
    }
    #[cfg(not(unix))]
    let _ = files;
}

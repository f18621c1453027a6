//! Counts of the shipped sources, compared with counts worked out by hand.

use corelay_coherence::{Counts, Distance, Machine, counts, pause, restart_counts, spawn};
use corelay_lines::{Count, Method, Setup, Workload};
use corelay_literature::Ffwd;
use corelay_locks::{Mcs, McsWord};
use corelay_sync::facade::atomic::{AtomicU64, Ordering};
use corelay_sync::{CachePadded, Session, Shared};
use std::rc::Rc;

/// Four cores of two sockets: places 0 and 1, 2 and 3.
fn machine() -> Machine {
    Machine::new(2, 2, 1).unwrap()
}

fn run<R: 'static>(machine: Machine, places: Vec<usize>, main: impl FnOnce() -> R + 'static) -> R {
    // SAFETY: locks and protocols take their thread-locals from the facade, which are the machine's.
    unsafe { corelay_coherence::run(machine, places, main) }
}

fn moved(counts: &Counts, distance: Distance) -> u64 {
    counts.moved[distance as usize]
}

/// Each of two threads writes a line of its own and reads the other's. A round trip moves both
/// lines, once each; before a thread writes, it claims its line back from the one that read it.
#[test]
fn a_ping_pong_moves_two_lines_in_a_round_trip() {
    const TRIPS: u64 = 50;
    for (places, distance) in [
        (vec![0, 1], Distance::Socket),
        (vec![0, 2], Distance::Across),
    ] {
        let (first, second) = (places[0], places[1]);
        let counted = run(machine(), places, || {
            type PaddedWord = CachePadded<AtomicU64>;
            let lines = Rc::new([PaddedWord::default(), PaddedWord::default()]);
            let send = |lines: &[PaddedWord; 2], number| lines[0].store(number, Ordering::Release);
            let wait = |line: &PaddedWord, number| {
                while line.load(Ordering::Acquire) != number {
                    pause();
                }
            };
            let shared = Rc::clone(&lines);
            let ping = spawn(move || {
                // One uncounted round, so that both threads have both lines.
                send(&shared, 1);
                wait(&shared[1], 1);
                restart_counts();
                for trip in 2..TRIPS + 2 {
                    send(&shared, trip);
                    wait(&shared[1], trip);
                }
                counts()
            });
            let pong = spawn(move || {
                for trip in 1..TRIPS + 2 {
                    wait(&lines[0], trip);
                    lines[1].store(trip, Ordering::Release);
                }
            });
            pong.join().unwrap();
            ping.join().unwrap()
        });
        for place in [first, second] {
            assert_eq!(moved(&counted[place], distance), TRIPS, "{distance:?}");
            assert_eq!(counted[place].lines(), TRIPS);
            assert_eq!(counted[place].claimed[distance as usize], TRIPS);
            assert_eq!(counted[place].from_memory, 0);
        }
    }
}

/// Four threads hand an MCS lock over in turn. By hand, for each turn:
///
/// | what | who | moves | claims |
/// |---|---|---|---|
/// | a new node in the frame, whose line the predecessor wrote last | the waiter | | 1 |
/// | the tail is exchanged; the line was the holder's, with the value | the waiter | 1 | |
/// | the waiter links itself into the predecessor's node | the waiter | 1 | |
/// | the predecessor, waiting too, reads its node again | the predecessor | 1 | |
/// | it is let in: its node is written, which it and its successor have | the holder | 1 | 1 |
/// | it sees that | the predecessor | 1 | |
/// | the value, whose line came with the tail | the holder | 1 | |
#[test]
fn mcs_hands_over_by_six_moves_and_two_claims() {
    const TURNS: u64 = 20;
    let counted = run(machine(), vec![0, 1, 2, 3], || {
        let lock = Rc::new(Mcs::new(0_u64));
        let turn = |lock: &corelay_locks::Lock<McsWord, u64>| {
            lock.session().apply(|value| {
                pause();
                *value += 1;
                *value
            })
        };
        let thread = |_| {
            let lock = Rc::clone(&lock);
            spawn(move || {
                let mut counted = None;
                loop {
                    match turn(&lock) {
                        40 => restart_counts(),
                        value if value == 40 + 4 * TURNS => counted = Some(counts()),
                        value if value > 40 + 4 * TURNS => return counted,
                        _ => {}
                    }
                    pause();
                }
            })
        };
        let threads: Vec<_> = (0..4).map(thread).collect();
        let ends = threads.into_iter().filter_map(|t| t.join().unwrap());
        ends.last().unwrap()
    });
    let all = counted.iter().fold(Counts::default(), |a, &b| a + b);
    assert_eq!(all.lines(), 6 * 4 * TURNS);
    assert_eq!(all.claims(), 2 * 4 * TURNS);
}

/// 15 clients have asked and wait; the server passes over their lines once.
#[test]
fn fifteen_clients_of_ffwd_are_answered_by_two_lines() {
    let machine = Machine::new(1, 16, 1).unwrap();
    for (clients, written) in [(15, 2), (7, 1), (8, 2)] {
        let places = (1..=clients).chain([0]).collect();
        let counted = run(machine, places, move || {
            let (number, mut servers) = Ffwd::new(1, clients, 1, |_| 0_u64);
            let number = Rc::new(number);
            let client = |index| {
                let number = Rc::clone(&number);
                spawn(move || {
                    let mut client = number.client(index).unwrap();
                    for _ in 0..2 {
                        client.apply(0, |n: &mut u64| {
                            *n += 1;
                            *n
                        });
                    }
                })
            };
            let clients: Vec<_> = (0..clients).map(client).collect();
            // The server runs at place 0, as the last thread.
            let served = spawn(move || {
                let mut server = servers.remove(0);
                server.begin();
                let all_wait = || (0..100).for_each(|_| pause());
                all_wait();
                assert_eq!(server.pass() as usize, clients.len());
                all_wait();
                restart_counts();
                assert_eq!(server.pass() as usize, clients.len());
                let by_server = counts()[0];
                all_wait();
                let by_all = counts();
                clients
                    .into_iter()
                    .for_each(|client| client.join().unwrap());
                (by_server, by_all)
            });
            served.join().unwrap()
        });
        let (server, all) = counted;
        let clients = clients as u64;
        // Their requests come to the server, and it claims the answers' lines. The number stays.
        assert_eq!(
            (server.lines(), server.claims()),
            (clients, written),
            "{clients} clients"
        );
        // The line with the toggles and the first seven answers goes to all of them; the other
        // to those whose answers lie there.
        let back: u64 = all[1..].iter().map(Counts::lines).sum();
        assert_eq!(back, clients + clients.saturating_sub(7));
    }
}

/// One call at a time through the mail line. Both sides poll it with a prefetch for writing. By
/// hand, for each call of a lone client:
///
/// | what | who | moves | claims |
/// |---|---|---|---|
/// | the call is written; the trustee, looking in vain, has taken the line | the client | 1 | |
/// | it is found | the trustee | 1 | |
/// | the client looks in vain, and takes the line to look on | the client | | 1 |
/// | the answer is written | the trustee | 1 | |
/// | it is found | the client | 1 | |
/// | the trustee looks in vain, and takes the line | the trustee | | 1 |
///
/// If there are more clients, the trustee comes back to a line when its client has written the next
/// call: then that is a claim, and no line moves for it.
#[test]
fn a_lone_call_moves_its_line_four_times_and_three_beside_others() {
    for (clients, lines) in [(1, 4), (4, 3), (8, 3)] {
        let count = counted(Method::Trust, Workload::FetchAdd, clients, 1);
        let rounded = |events| count.per_operation(events).round() as u64;
        assert_eq!(rounded(count.all.lines()), lines, "{clients} clients");
        assert_eq!(rounded(count.all.claims()), 2, "{clients} clients");
        let calls = count.operations;
        let off =
            count.all.lines().abs_diff(lines * calls) + count.all.claims().abs_diff(2 * calls);
        assert!(off * 50 < calls, "{clients} clients: {:?}", count.all);
    }
}

fn counted(method: Method, workload: Workload, clients: usize, work: u64) -> Count {
    Setup {
        machine: Machine::new(1, 40, 1).unwrap(),
        places: (0..clients + method.servers()).collect(),
        workload,
        size: 64,
        operations: 100,
        work,
    }
    .count(method)
}

/// Lines moved per operation.
fn lines(method: Method, workload: Workload, clients: usize, work: u64) -> f64 {
    let count = counted(method, workload, clients, work);
    count.per_operation(count.all.lines())
}

/// A waiter hands its closure to the combiner: a constant number of lines, as Fatourou and
/// Kallimanis argue, whatever the number of clients and the length of a section. By hand, for each
/// operation of CC-Synch, whose combiner is busy:
///
/// | what | who | moves | claims |
/// |---|---|---|---|
/// | a new operation in the frame, whose last result this thread has read there | the waiter | | 1 |
/// | the tail is exchanged | the waiter | 1 | |
/// | the request is written into the node that was the tail, which its last owner has reset | the waiter | 1 | |
/// | the link and the request are read | the combiner | 1 | |
/// | the operation is read, and the closure taken out of it | the combiner | 1 | 1 |
/// | the answer is written into the node, which the waiter reads all the time | the combiner | | 1 |
/// | it is seen | the waiter | 1 | |
/// | the node is reset | the waiter | | 1 |
/// | the result is read | the waiter | 1 | |
///
/// In DSM-Synch the node is new in the frame, so it is claimed then and not reset. The successor
/// writes its link there (1 move), and the waiter, who reads the node all the time, gets it back
/// (1 move); but the request is there already.
///
/// The value and the word's own line move when another thread becomes the combiner, after 64
/// operations.
#[test]
fn combining_queues_move_a_constant_number_of_lines() {
    for (method, moves) in [(Method::CcSynch, 6.0), (Method::DsmSynch, 7.0)] {
        for (clients, work) in [(4, 1), (8, 1), (16, 1), (8, 8)] {
            let count = counted(method, Workload::FetchAdd, clients, work);
            let moved = count.per_operation(count.all.lines());
            let claimed = count.per_operation(count.all.claims());
            assert!(
                (moved - moves).abs() < 0.4,
                "{method}, {clients} clients, {work}: {moved}"
            );
            assert!(
                (claimed - 4.0).abs() < 0.4,
                "{method}, {clients} clients, {work}: {claimed}"
            );
        }
    }
}

/// If sections are so long that waiters no longer spin, each waits by a token in its frame. By hand,
/// beside the moves of a waiter that spins:
///
/// | what | who | moves | claims |
/// |---|---|---|---|
/// | the token is set | the combiner | 1 | |
/// | that is seen | the waiter | 1 | |
/// | the token ends | the waiter | | 1 |
///
/// The answer in the node is not seen then, for nobody looks; the node comes back (1 move) when the
/// waiter resets it, or makes a new one there (1 claim less).
#[test]
fn a_waiter_by_a_token_costs_two_lines_more() {
    for (method, moves) in [(Method::CcSynch, 8.0), (Method::DsmSynch, 9.0)] {
        let count = counted(method, Workload::FetchAdd, 8, 28);
        let moved = count.per_operation(count.all.lines());
        let claimed = count.per_operation(count.all.claims());
        assert!((moved - moves).abs() < 0.1, "{method}: {moved}");
        assert!((claimed - 4.0).abs() < 0.4, "{method}: {claimed}");
    }
}

/// Here all sleep but the combiner. It is relieved by one of them, so each makes its share of the
/// operations.
#[test]
fn a_combiner_is_relieved_by_a_client_that_sleeps() {
    for method in [Method::CcSynch, Method::DsmSynch] {
        let count = counted(method, Workload::FetchAdd, 32, 8);
        assert!(
            count.all.sleeps >= count.operations,
            "{method}: {:?}",
            count.all
        );
        assert!(count.fewest > 50, "{method}: {}", count.fewest);
    }
}

/// A lone client of CC-Synch has every line. Of two clients one combines all the time, if sections
/// are so long that the other comes meanwhile. By hand, for an operation of each:
///
/// | what | who | moves | claims |
/// |---|---|---|---|
/// | a new operation in the frame, whose last result this thread has read there | the waiter | | 1 |
/// | the tail is exchanged; the combiner had taken it, and comes back to free it | both | 2 | |
/// | the request is written into the combiner's node, which both have read | the waiter | | 1 |
/// | the link and the request are read | the combiner | 1 | |
/// | the operation is read, and the closure taken out of it | the combiner | 1 | 1 |
/// | the answer is written into the node, which the waiter reads all the time | the combiner | | 1 |
/// | it is seen, and the node is reset | the waiter | 1 | 1 |
/// | the waiter's own node, the last one, is looked at: nobody follows | the combiner | 1 | |
/// | the result is read | the waiter | 1 | |
///
/// The two exchange their nodes, so the next round is the same. If a section takes no step, it is
/// over before the other comes: only the tail and the value go over.
#[test]
fn cc_synch_moves_nothing_alone_and_serves_the_second_of_two() {
    let cc_synch = |clients, work| {
        let Count {
            operations,
            all,
            fewest,
            most,
            ..
        } = counted(Method::CcSynch, Workload::FetchAdd, clients, work);
        assert_eq!((fewest, most), (100, 100), "{clients} clients, {work}");
        assert_eq!(
            (all.from_memory, all.sleeps),
            (0, 0),
            "{clients} clients, {work}"
        );
        (operations, all.lines(), all.claims())
    };
    for work in [0, 1, 8] {
        assert_eq!(cc_synch(1, work), (100, 0, 0));
    }
    assert_eq!(cc_synch(2, 0), (200, 2 * 200, 0));
    for work in [4, 8] {
        assert_eq!(cc_synch(2, work), (200, 7 * 100, 5 * 100));
    }
}

/// Each exchange of a waiter takes the lock's line away. A line moves once a step, so a section of
/// so many steps costs as many moves, if there are waiters enough; the last three are the exchange
/// that succeeds, the value, and the exchange meanwhile. Waiters of `ttas` only read, and those of
/// `mcs` read lines of their own.
#[test]
fn a_section_of_tas_moves_a_line_each_step_and_others_do_not() {
    let tas = |clients, work| lines(Method::Tas, Workload::FetchAdd, clients, work);
    for work in [4, 16, 32] {
        let moved = tas(16, work);
        let expected = work as f64;
        assert!(
            (expected..=expected + 4.0).contains(&moved),
            "{work} steps: {moved}"
        );
    }
    // A lone waiter has the line.
    assert!(tas(2, 32) < 4.0);
    let [short, long] = [1, 16].map(|work| lines(Method::Mcs, Workload::FetchAdd, 8, work));
    assert!((short - long).abs() < 0.1, "mcs: {short}, {long}");
}

/// Eight clients go round an MCS lock, so all of them put, and then all of them take. The values of
/// such a round fill a line of the queue, and the same line of the stack again and again. By hand:
///
/// * Of eight puts the first finds the line shared with those that took from it, and claims it. Each
///   of the others moves it from the client before: 7 moves and 1 claim.
/// * Of eight takes that of the last client to put finds the line at home: 7 moves.
///
/// That is added to the 6 moves and 2 claims of the lock.
#[test]
fn a_queue_and_a_stack_move_their_values_with_the_lock() {
    for workload in [Workload::Queue, Workload::Stack] {
        let count = counted(Method::Mcs, workload, 8, 1);
        let [moved, claimed] = [count.all.lines(), count.all.claims()];
        let rounds = count.operations / 16;
        assert!(
            moved.abs_diff(rounds * (16 * 6 + 14)) < 10,
            "{workload}: {moved}"
        );
        assert!(
            claimed.abs_diff(rounds * (16 * 2 + 1)) < 10,
            "{workload}: {claimed}"
        );
    }
}

/// A trustee keeps the queue's lines, and a put or a take fits into the line of a call as an addition
/// does. So the calls move what additions do (above), and the queue adds nothing: 4 moves for a lone
/// client, 3 with several. With two, every other visit of the trustee comes before the next call.
#[test]
fn a_queue_of_a_trustee_stays_there() {
    for (clients, halves) in [(1, 8), (2, 7), (8, 6)] {
        let count = counted(Method::Trust, Workload::Queue, clients, 1);
        assert_eq!(
            2 * count.all.lines(),
            halves * count.operations,
            "{clients} clients"
        );
        assert_eq!(
            count.all.claims(),
            2 * count.operations,
            "{clients} clients"
        );
    }
}

/// The lines of a structure follow a lock from thread to thread. With a server they stay, and a
/// combiner keeps them for up to 64 operations.
#[test]
fn structures_follow_a_lock_and_stay_with_a_server() {
    let added = |method, workload, clients| {
        let alone = lines(method, Workload::FetchAdd, clients, 1);
        lines(method, workload, clients, 1) - alone
    };
    // A search goes over all nodes that other clients have written since this client's last one.
    let [two, eight] = [2, 8].map(|clients| added(Method::Mcs, Workload::List, clients));
    assert!(1.5 * two < eight && eight > 1.0, "list: {two}, {eight}");
    for method in [Method::Trust, Method::Ffwd] {
        for workload in Workload::ALL {
            let moved = added(method, workload, 8);
            assert!(moved.abs() < 0.7, "{method}, {workload}: {moved}");
        }
    }
    for method in [Method::CcSynch, Method::DsmSynch] {
        let moved = added(method, Workload::Queue, 8);
        assert!((0.0..0.3).contains(&moved), "{method}: {moved}");
    }
}

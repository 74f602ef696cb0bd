//! Many rounds with random delays: every round draws a pipeline, and its sum must be the serial one.
#![cfg(not(any(loom, miri)))]
#![expect(clippy::unwrap_used, reason = "the file is a test")]

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use steelyard_sync::{
    Deque, Distribution, Draws, End, Load, LockKind, Mpmc, Ring, Settings, Stolen, Strategy, parallel, serial,
};

/// Rounds of each test: few in every test run, 1000 and more with `STEELYARD_STRESS_ROUNDS`.
fn rounds() -> u32 {
    std::env::var("STEELYARD_STRESS_ROUNDS").map_or(20, |text| text.parse().unwrap())
}

/// Numbers of a round; the same round draws the same ones.
struct Choice(Draws);

impl Choice {
    fn of_round(round: u32) -> Self {
        let mut draws = Draws::new(1 + (round % 255) as u8);
        draws.advance(u64::from(round));
        Self(draws)
    }

    fn below(&mut self, bound: u32) -> u32 {
        self.0.next_below(bound)
    }

    /// Nothing, a spin, an offer of the core or a short sleep.
    fn delay(&mut self) {
        match self.below(64) {
            0 => thread::sleep(Duration::from_micros(u64::from(self.below(50)))),
            1..=6 => thread::yield_now(),
            7..=20 => (0..self.below(100)).for_each(|_| std::hint::spin_loop()),
            _ => {}
        }
    }
}

#[test]
fn every_pipeline_gives_the_sum_of_the_serial_program() {
    // Something that competes for the cores, so that threads lose them at all places.
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut choice = Choice::of_round(0);
            while !done.load(Ordering::Relaxed) {
                choice.delay();
            }
        });
        for round in 0..rounds() {
            let mut choice = Choice::of_round(round);
            let distribution =
                if choice.below(2) == 0 { Distribution::Uniform } else { Distribution::Exponential };
            let load = Load {
                sources: 1 + choice.below(6),
                mean: 1 + choice.below(200),
                distribution,
                trial: u64::from(choice.below(12)),
                end: End::Packets(u64::from(1 + choice.below(300))),
            };
            let (_, lock, _) = LockKind::ALL[choice.below(9) as usize];
            let (_, strategy, _) = Strategy::ALL[choice.below(8) as usize];
            let queues = load.sources as usize;
            let free = 1 + choice.below(9) as usize;
            let workers = if strategy == Strategy::LockFree { queues } else { free };
            let depth = 1 + choice.below(40) as usize;
            let settings = Settings { workers, depth, lock: Some(lock), strategy, cpus: Vec::new() };
            let outcome = parallel(&load, &settings).unwrap();
            assert_eq!(outcome.checksum(), serial(&load).checksum(), "round {round}: {load:?} {settings:?}");
        }
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn timed_pipelines_end_whoever_sleeps() {
    for round in 0..rounds().div_ceil(4) {
        let mut choice = Choice::of_round(round + 7);
        let load = Load {
            sources: 1 + choice.below(4),
            mean: 1 + choice.below(20_000),
            distribution: Distribution::Exponential,
            trial: u64::from(round),
            end: End::After(1 + u64::from(choice.below(4))),
        };
        let (_, lock, _) = LockKind::ALL[choice.below(9) as usize];
        let (_, strategy, _) = Strategy::ALL[choice.below(8) as usize];
        let workers =
            if strategy == Strategy::LockFree { load.sources as usize } else { 1 + choice.below(9) as usize };
        let settings = Settings { workers, depth: 8, lock: Some(lock), strategy, cpus: Vec::new() };
        let outcome = parallel(&load, &settings).unwrap();
        assert!(outcome.packets() <= outcome.dispatched, "{load:?} {settings:?}");
    }
}

#[test]
fn a_ring_keeps_order_under_delays() {
    for round in 0..rounds() {
        let mut ring = Ring::new(1 + (round % 33) as usize);
        let (mut producer, mut consumer) = ring.split();
        thread::scope(|scope| {
            scope.spawn(move || {
                let mut choice = Choice::of_round(round);
                for value in 0..500 {
                    while producer.push(value).is_err() {
                        thread::yield_now();
                    }
                    if choice.below(8) == 0 {
                        producer.flush();
                    }
                    choice.delay();
                }
                producer.flush();
            });
            let mut choice = Choice::of_round(round + 1);
            let mut next = 0;
            while next < 500 {
                match consumer.pop() {
                    Some(value) => {
                        assert_eq!(value, next);
                        next += 1;
                    }
                    None => thread::yield_now(),
                }
                choice.delay();
            }
        });
    }
}

/// Threads that each push one value and take one: no more values than threads are inside, so a queue as deep
/// as that is never full, and never empty for whoever has just pushed.
#[test]
fn a_queue_with_room_takes_every_value_under_delays() {
    for round in 0..rounds() {
        let threads = 2 + (round % 3) as usize;
        let queue = Mpmc::new(threads + (round % 2) as usize);
        let sum: u64 = thread::scope(|scope| {
            let turns: Vec<_> = (0..threads)
                .map(|thread| {
                    let queue = &queue;
                    scope.spawn(move || {
                        let mut choice = Choice::of_round(round + u32::try_from(thread).unwrap());
                        let mut sum = 0;
                        for value in 0..200 {
                            queue.push(value).unwrap();
                            choice.delay();
                            sum += queue.pop().unwrap();
                        }
                        sum
                    })
                })
                .collect();
            turns.into_iter().map(|turn| turn.join().unwrap()).sum()
        });
        assert_eq!(sum, threads as u64 * 100 * 199);
        assert_eq!((queue.len(), queue.pop()), (0, None));
    }
}

/// Many to many, and one owner with thieves: each value arrives once, in order at each taker.
#[test]
fn nothing_is_lost_or_doubled_under_delays() {
    for round in 0..rounds() {
        let depth = 1 + (round % 17) as usize;
        let queue = Mpmc::new(depth);
        let mut deque = Deque::<u64>::new(depth);
        let (mut owner, thief) = deque.split();
        let done = AtomicBool::new(false);
        let mut all: Vec<u64> = thread::scope(|scope| {
            let takers: Vec<_> = (0..3)
                .map(|taker| {
                    let (queue, done) = (&queue, &done);
                    scope.spawn(move || {
                        let mut choice = Choice::of_round(round + taker);
                        let (mut queued, mut stolen) = (VecDeque::new(), VecDeque::new());
                        loop {
                            // ORDERING: pairs with the Release below: everything was pushed.
                            let was_done = done.load(Ordering::Acquire);
                            let from_queue = queue.pop();
                            let from_deque = thief.steal();
                            queued.extend(from_queue);
                            if let Stolen::Value(value) = from_deque {
                                stolen.push_back(value);
                            }
                            if was_done && from_queue.is_none() && from_deque == Stolen::Empty {
                                break;
                            }
                            choice.delay();
                        }
                        assert!(queued.iter().is_sorted() && stolen.iter().is_sorted());
                        queued.into_iter().chain(stolen).collect::<Vec<u64>>()
                    })
                })
                .collect();
            let mut choice = Choice::of_round(round + 9);
            for value in 0..200 {
                while queue.push(value).is_err() {
                    thread::yield_now();
                }
                while owner.push(1000 + value).is_err() {
                    thread::yield_now();
                }
                choice.delay();
            }
            // ORDERING: pairs with the Acquire above.
            done.store(true, Ordering::Release);
            takers.into_iter().flat_map(|taker| taker.join().unwrap()).collect()
        });
        all.sort_unstable();
        assert_eq!(all, (0..200).chain(1000..1200).collect::<Vec<u64>>(), "round {round}");
    }
}

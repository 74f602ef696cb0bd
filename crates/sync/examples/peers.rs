//! The packet pipeline on the channels and pools of others, for `benches/packets.py`.
//!
//! `peers KIND M n W U s D K` prints the packets finished within M ms, as `steelyard-packets parallel` does.
#![cfg(not(loom))]
#![expect(clippy::print_stdout, clippy::expect_used, clippy::panic, reason = "a program for a benchmark")]

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::sync_channel;
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::Duration;

use crossbeam_channel::bounded;
use rayon::prelude::*;
use steelyard_sync::{Distribution, Packet, Sources};

/// Packets in one message of `crossbeam-batches`.
const BATCH: usize = 8;
/// Packets that a worker of `mutex` draws in one turn.
const TURN: usize = 16;

struct Run {
    ms: u64,
    sources: Sources,
    depth: usize,
    workers: usize,
    stop: AtomicBool,
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [kind, numbers @ ..] = &words[..] else { panic!("peers KIND M n W U s D K") };
    let number = |place: usize| -> u32 { numbers[place].parse().expect("a number") };
    let distribution = if numbers[3] == "t" { Distribution::Uniform } else { Distribution::Exponential };
    let run = Run {
        ms: u64::from(number(0)),
        sources: Sources::new(number(1), number(2), distribution, u64::from(number(4))),
        depth: number(5) as usize,
        workers: number(6) as usize,
        stop: AtomicBool::new(false),
    };
    println!(
        "{}",
        match kind.as_str() {
            "crossbeam" => run.channels(bounded, |sender, packet| sender.send(packet).is_ok()),
            "crossbeam-batches" => run.batched_channels(),
            "crossbeam-shared" => run.shared_channel(),
            "mutex" => run.mutex(),
            "std" => run.std_channels(),
            "rayon-bridge" => run.rayon_bridge(),
            "rayon-rounds" => run.rayon_rounds(),
            _ => panic!(
                "KIND: crossbeam, crossbeam-batches, crossbeam-shared, mutex, std, rayon-bridge, rayon-rounds"
            ),
        }
    );
}

/// Packets of one receiver until the stop flag.
fn process(packets: impl IntoIterator<Item = Packet>, stop: &AtomicBool) -> u64 {
    let (mut count, mut sum) = (0, 0_u64);
    for packet in packets {
        sum = sum.wrapping_add(packet.fingerprint());
        if stop.load(Relaxed) {
            break;
        }
        count += 1;
    }
    std::hint::black_box(sum);
    count
}

fn total(workers: Vec<ScopedJoinHandle<'_, u64>>) -> u64 {
    workers.into_iter().map(|worker| worker.join().expect("a worker")).sum()
}

impl Run {
    fn start_timer<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(self.ms));
            self.stop.store(true, Relaxed);
        });
    }

    /// Deals packets in turn until `send` fails, for want of receivers, or the stop flag is set.
    fn deal(&self, mut send: impl FnMut(usize, Packet) -> bool) {
        let mut sources = self.sources.clone();
        while !self.stop.load(Relaxed) {
            for source in 0..sources.count() {
                if !send(source, sources.next_packet(source)) {
                    return;
                }
            }
        }
    }

    fn channels(
        &self,
        open: fn(usize) -> (crossbeam_channel::Sender<Packet>, crossbeam_channel::Receiver<Packet>),
        send: fn(&crossbeam_channel::Sender<Packet>, Packet) -> bool,
    ) -> u64 {
        thread::scope(|scope| {
            let (senders, receivers): (Vec<_>, Vec<_>) =
                (0..self.sources.count()).map(|_| open(self.depth)).unzip();
            let work = |receiver| scope.spawn(|| process(receiver, &self.stop));
            let workers: Vec<_> = receivers.into_iter().map(work).collect();
            self.start_timer(scope);
            self.deal(|source, packet| send(&senders[source], packet));
            drop(senders);
            total(workers)
        })
    }

    /// As `channels`, several packets in each message; a channel holds as many packets.
    fn batched_channels(&self) -> u64 {
        thread::scope(|scope| {
            let (senders, receivers): (Vec<_>, Vec<_>) =
                (0..self.sources.count()).map(|_| bounded((self.depth / BATCH).max(1))).unzip();
            let work = |receiver: crossbeam_channel::Receiver<[Packet; BATCH]>| {
                scope.spawn(move || process(receiver.into_iter().flatten(), &self.stop))
            };
            let workers: Vec<_> = receivers.into_iter().map(work).collect();
            self.start_timer(scope);
            let mut batches = vec![[Packet::default(); BATCH]; senders.len()];
            let mut dealt = 0;
            self.deal(|source, packet| {
                batches[source][dealt % BATCH] = packet;
                // Sources are dealt from in turn, so all batches are full in the same round.
                let is_full = dealt % BATCH + 1 == BATCH;
                dealt += usize::from(source + 1 == senders.len());
                !is_full || senders[source].send(batches[source]).is_ok()
            });
            drop(senders);
            total(workers)
        })
    }

    /// The generator under a mutex, from which workers draw in turn.
    fn mutex(&self) -> u64 {
        let generator = Mutex::new((self.sources.clone(), 0));
        let draw = || {
            let (sources, next) = &mut *generator.lock().expect("no worker panics");
            std::array::from_fn::<_, TURN, _>(|_| {
                *next = if *next + 1 < sources.count() { *next + 1 } else { 0 };
                sources.next_packet(*next)
            })
        };
        thread::scope(|scope| {
            let work = || process(std::iter::repeat_with(draw).flatten(), &self.stop);
            let workers = (0..self.workers).map(|_| scope.spawn(work)).collect();
            self.start_timer(scope);
            total(workers)
        })
    }

    fn shared_channel(&self) -> u64 {
        thread::scope(|scope| {
            let (sender, receiver) = bounded(self.depth * self.sources.count());
            let workers: Vec<_> = (0..self.workers)
                .map(|_| {
                    let receiver = receiver.clone();
                    scope.spawn(|| process(receiver, &self.stop))
                })
                .collect();
            drop(receiver);
            self.start_timer(scope);
            self.deal(|_, packet| sender.send(packet).is_ok());
            drop(sender);
            total(workers)
        })
    }

    fn std_channels(&self) -> u64 {
        thread::scope(|scope| {
            let (senders, receivers): (Vec<_>, Vec<_>) =
                (0..self.sources.count()).map(|_| sync_channel(self.depth)).unzip();
            let work = |receiver| scope.spawn(|| process(receiver, &self.stop));
            let workers: Vec<_> = receivers.into_iter().map(work).collect();
            self.start_timer(scope);
            self.deal(|source, packet| senders[source].send(packet).is_ok());
            drop(senders);
            total(workers)
        })
    }

    fn pool(&self) -> rayon::ThreadPool {
        rayon::ThreadPoolBuilder::new().num_threads(self.workers).build().expect("a pool")
    }

    /// The idiomatic way to process an iterator in parallel: workers draw packets themselves.
    fn rayon_bridge(&self) -> u64 {
        let mut sources = self.sources.clone();
        let mut source = 0;
        let packets = std::iter::from_fn(|| {
            source = if source + 1 < sources.count() { source + 1 } else { 0 };
            (!self.stop.load(Relaxed)).then(|| sources.next_packet(source))
        });
        thread::scope(|scope| {
            self.start_timer(scope);
            self.pool().install(|| packets.par_bridge().map(|packet| self.finish(packet)).sum())
        })
    }

    /// As many packets as all queues hold, then all workers on them.
    fn rayon_rounds(&self) -> u64 {
        let mut sources = self.sources.clone();
        let pool = self.pool();
        let mut count = 0;
        thread::scope(|scope| {
            self.start_timer(scope);
            while !self.stop.load(Relaxed) {
                let round = self.depth * sources.count();
                let packets: Vec<Packet> =
                    (0..round).map(|place| sources.next_packet(place % sources.count())).collect();
                count +=
                    pool.install(|| packets.into_par_iter().map(|packet| self.finish(packet)).sum::<u64>());
            }
        });
        count
    }

    fn finish(&self, packet: Packet) -> u64 {
        std::hint::black_box(packet.fingerprint());
        u64::from(!self.stop.load(Relaxed))
    }
}

//! Prints how many events and scheduling decisions are simulated per second of CPU time: the best of some tries.
//!
//! `events [CORES ...]`: numbers of simulated CPUs, 2 to 1024 by default.

#![expect(clippy::print_stdout, reason = "a program for a benchmark")]

use nix::time::{ClockId, clock_gettime};
use steelyard_sched::{Config, Policy, Simulation};

/// Events per try, about.
const EVENTS: f64 = 2e5;
const TRIES: usize = 40;

/// CPU time of this thread: what other programs on the machine take is not ours.
#[expect(clippy::cast_precision_loss, reason = "seconds of this process")]
fn cpu_seconds() -> nix::Result<f64> {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?;
    Ok(time.tv_sec() as f64 + time.tv_nsec() as f64 / 1e9)
}

fn config_of(policy: Policy, cores: u32) -> Config {
    let mut config =
        Config { policy, cores, cache_cores: cores.min(16), unused_cores: 0, ..Config::default() };
    config.service.threads = 4 * cores;
    config.service.rate_per_s *= f64::from(cores) / 4.0;
    config.best_effort.jobs = cores.div_ceil(2);
    // Every CPU ticks 250 times and answers 142 requests per second, and each request takes about three events.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some seconds to minutes")]
    let length_ns = (EVENTS / (700.0 * f64::from(cores)) * 1e9) as u64;
    config.phases.best_effort_start_ns = length_ns / 10;
    config.phases.best_effort_stop_ns = length_ns;
    config.phases.client_end_ns = length_ns;
    config.phases.limit_ns = 2 * length_ns;
    config
}

#[expect(clippy::cast_precision_loss, reason = "counts and times below 2^52")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let asked: Vec<u32> = std::env::args().skip(1).map(|word| word.parse()).collect::<Result<_, _>>()?;
    let sizes = if asked.is_empty() { vec![2, 4, 8, 64, 256, 1024] } else { asked };
    println!(
        "{:>5}  {:<8}  {:>18}  {:>20}  {:>22}",
        "CPUs", "policy", "million events/s", "million decisions/s", "simulated s per s"
    );
    for cores in sizes {
        for policy in [Policy::Be, Policy::Idle, Policy::Weights, Policy::Fifo] {
            let mut best = (f64::MAX, 0, 0, 0);
            for _ in 0..TRIES {
                let mut simulation = Simulation::new(config_of(policy, cores))?;
                let begin_s = cpu_seconds()?;
                while simulation.advance(1 << 20) {}
                let seconds = cpu_seconds()? - begin_s;
                let counters = simulation.counters();
                if seconds < best.0 {
                    best = (seconds, counters.events, counters.scheduling_events, simulation.now_ns());
                }
            }
            let (seconds, events, decisions, now_ns) = best;
            println!(
                "{cores:>5}  {:<8}  {:>18.1}  {:>20.1}  {:>22.1}",
                format!("{policy:?}").to_lowercase(),
                events as f64 / seconds / 1e6,
                decisions as f64 / seconds / 1e6,
                now_ns as f64 / 1e9 / seconds,
            );
        }
    }
    Ok(())
}

//! Prints how many events and scheduling decisions are simulated per second on one core.

use std::time::Instant;

use steelyard_sched::{Config, Policy, Simulation};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for cores in [2_u32, 4, 8, 64, 256, 1024] {
        for policy in [Policy::Be, Policy::Idle, Policy::Weights, Policy::Fifo] {
            let mut config = Config { policy, cores, cache_cores: cores.min(16), ..Config::default() };
            config.service.threads = 4 * cores;
            config.service.rate_per_s *= f64::from(cores) / 4.0;
            config.best_effort.jobs = cores / 2;
            if cores > 8 {
                config.phases.best_effort_start_ns = 250_000_000;
                config.phases.best_effort_stop_ns = 750_000_000;
                config.phases.client_end_ns = 1_000_000_000;
            }
            let mut simulation = Simulation::new(config)?;
            let begin = Instant::now();
            while simulation.advance(1 << 20) {}
            let seconds = begin.elapsed().as_secs_f64();
            let counters = simulation.counters();
            let rate = |count: u64| f64::from(u32::try_from(count).unwrap_or(u32::MAX)) / seconds / 1e6;
            eprintln!(
                "{cores:>5} cores  {policy:?}: {:.1} million events/s, {:.1} million decisions/s, {:.2} s for {:.1} s",
                rate(counters.events),
                rate(counters.scheduling_events),
                seconds,
                f64::from(u32::try_from(simulation.now_ns() / 1_000_000).unwrap_or(u32::MAX)) / 1e3,
            );
        }
    }
    Ok(())
}

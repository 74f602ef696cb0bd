//! Without jobs and without costs, the service under `SCHED_FIFO` is the queue M/D/c, whose waiting times are known.

#![allow(clippy::expect_used, reason = "a test may panic")]
#![allow(clippy::cast_precision_loss, reason = "counts and times below 2^52")]

use steelyard_sched::{Config, Costs, Policy, Simulation};

/// Mean waiting time of M/D/c over its service time.
///
/// SOURCE: Crommelin 1932: every service time, those in service leave and a Poisson number of customers comes, so that the
/// number in the system after is max(before - c, 0) + Poisson(c load), in equilibrium the same distribution as
/// before; waiting time by Little's law. Found by iteration over the distribution.
fn waiting_in_theory(servers: usize, load: f64) -> f64 {
    const MOST: usize = 600;
    let offered = load * servers as f64;
    let mut poisson = vec![(-offered).exp()];
    for count in 1..MOST {
        poisson.push(poisson[count - 1] * offered / count as f64);
    }
    let mut shares = vec![0.0; MOST];
    shares[0] = 1.0;
    for _ in 0..100_000 {
        let mut after = vec![0.0; MOST];
        for (before, &share) in shares.iter().enumerate().filter(|(_, share)| **share > 1e-18) {
            let rest = before.saturating_sub(servers);
            for (come, &probability) in poisson.iter().enumerate().take((MOST - rest).min(100)) {
                after[rest + come] += share * probability;
            }
        }
        let change: f64 = shares.iter().zip(&after).map(|(old, new)| (old - new).abs()).sum();
        shares = after;
        if change < 1e-11 {
            break;
        }
    }
    let in_system: f64 = shares.iter().enumerate().map(|(count, share)| count as f64 * share).sum();
    in_system / offered - 1.0
}

/// Mean waiting time over the service time, and its standard error from batches of requests.
fn waiting_in_simulation(servers: u32, load: f64, seconds: u64) -> (f64, f64) {
    let mut config =
        Config { policy: Policy::Fifo, cores: servers, cache_cores: servers, ..Config::default() };
    config.costs = Costs { switch_ns: 0, migration_ns: 0, interrupt_ns: 0 };
    config.best_effort.jobs = 0;
    config.service.threads = 2000;
    config.service.rate_per_s = load * f64::from(servers) / 0.006;
    config.phases.client_end_ns = seconds * 1_000_000_000;
    config.phases.limit_ns = (seconds + 100) * 1_000_000_000;
    let mut simulation = Simulation::new(config).expect("within the ranges");
    while simulation.advance(1 << 20) {}
    let work_ns = config.service.work_ns as f64;
    let waiting: Vec<f64> = simulation.requests()[5_000..]
        .iter()
        .map(|each| (each.finished_ns - each.intended_ns) as f64 / work_ns - 1.0)
        .collect();
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let batches: Vec<f64> = waiting.chunks(waiting.len() / 50).map(mean).collect();
    let middle = mean(&batches);
    let variance = batches.iter().map(|each| (each - middle).powi(2)).sum::<f64>() / 49.0;
    (mean(&waiting), (variance / 50.0).sqrt())
}

#[test]
fn the_theory_agrees_with_one_server_in_closed_form() {
    for load in [0.5, 0.85, 0.95] {
        let closed = load / (2.0 * (1.0 - load)); // Pollaczek and Khinchine
        assert!((waiting_in_theory(1, load) / closed - 1.0).abs() < 1e-4, "{load}");
    }
}

#[test]
fn mean_waiting_times_are_those_of_the_theory() {
    for (servers, load, seconds) in
        [(1, 0.7, 1500), (1, 0.85, 3000), (4, 0.7, 1000), (4, 0.85, 1500), (4, 0.95, 6000), (16, 0.9, 400)]
    {
        let expected = waiting_in_theory(servers as usize, load);
        let (found, error) = waiting_in_simulation(servers, load, seconds);
        let text = format!("{servers} servers at {load}: {found:.4} service times, theory {expected:.4}");
        println!("{text}, standard error {error:.4}");
        assert!((found - expected).abs() < 4.0 * error, "{text}");
        assert!(error < 0.05 * expected, "{text}: the error {error} is too large to tell");
    }
}

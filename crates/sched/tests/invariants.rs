//! What holds for every simulation, and what each check of the best-effort class is needed for.

#![allow(clippy::expect_used, reason = "a test may panic")]

use proptest::prelude::*;
use steelyard_sched::{Checks, Config, Policy, Simulation};

const MS: u64 = 1_000_000;
const POLICIES: [Policy; 7] =
    [Policy::None, Policy::Nice, Policy::Weights, Policy::Idle, Policy::CpuIdle, Policy::Be, Policy::Fifo];

fn finished(config: Config) -> Simulation {
    let mut simulation = Simulation::new(config).expect("within the ranges");
    while simulation.advance(1 << 16) {}
    simulation
}

fn short(seed: u64, cores: u32, cache_cores: u32, load: f64) -> Config {
    let mut config = Config { seed, cores, cache_cores, unused_cores: 0, ..Config::default() };
    config.service.rate_per_s = load * f64::from(cores) / 0.006;
    config.service.threads = 4 * cores;
    config.phases.best_effort_start_ns = 100 * MS;
    config.phases.best_effort_stop_ns = 900 * MS;
    config.phases.client_end_ns = 1000 * MS;
    config.phases.limit_ns = 20_000 * MS;
    config
}

prop_compose! {
    fn any_config()(
        seed in any::<u64>(),
        cores in 1_u32..20,
        cache_cores in 1_u32..20,
        load in 0.2_f64..1.1,
        policy in prop::sample::select(&POLICIES[..]),
        bits in 0_u8..8,
        jobs in 0_u32..30,
        threads in 1_u32..60,
        (is_poisson, has_reader) in any::<(bool, bool)>(),
        long_share in prop::sample::select(vec![0.0, 0.02, 0.3]),
    ) -> Config {
        let mut config = short(seed, cores, cache_cores, load);
        config.policy = policy;
        config.checks = Checks { local: bits & 1 > 0, entry: bits & 2 > 0, exit: bits & 4 > 0 };
        config.best_effort.jobs = jobs;
        config.service.threads = threads;
        (config.service.is_poisson, config.service.has_reader) = (is_poisson, has_reader);
        config.service.long_share = long_share;
        config.service.long_factor = 5.0;
        // One thread may have to do what twenty CPUs are asked for: 46 s and what is drawn beyond it.
        config.phases.limit_ns = 120_000 * MS;
        config
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_request_is_lost_and_all_time_adds_up(config in any_config()) {
        let simulation = finished(config);
        let requests = simulation.requests();
        let usual_ns = config.service.work_ns;
        let mut work_ns = 0;
        for each in requests {
            let own_ns = if each.kind == 1 { 5 * usual_ns } else { usual_ns };
            work_ns += own_ns;
            prop_assert!(each.started_ns >= each.intended_ns);
            prop_assert!(each.finished_ns >= each.started_ns + own_ns);
        }
        let begins = requests.iter().map(|each| each.started_ns);
        prop_assert!(begins.is_sorted(), "a younger request was taken before an older one");
        let last = simulation.samples().last().expect("one at the end");
        let threads = simulation.thread_cpu_ns();
        let (service, jobs) = threads.split_at(config.service.threads as usize + 1);
        prop_assert_eq!(service.iter().sum::<u64>(), last.service_cpu_ns);
        prop_assert_eq!(jobs.iter().sum::<u64>(), last.best_effort_cpu_ns);
        let total_ns = last.service_cpu_ns + last.best_effort_cpu_ns;
        prop_assert!(total_ns <= u64::from(config.cores) * simulation.now_ns());
        // Beyond its work, the service uses what switches, migrations and reading cost.
        let lost_ns = last.service_cpu_ns - work_ns;
        let most_ns = simulation.counters().switches * (config.costs.switch_ns + config.costs.migration_ns)
            + requests.len() as u64 * config.costs.read_ns;
        prop_assert!(lost_ns <= most_ns, "{lost_ns} ns lost, at most {most_ns}");
        let done_ns = simulation.iterations().len() as u64 * config.best_effort.iteration_ns;
        prop_assert!(done_ns <= last.best_effort_cpu_ns);
    }

    #[test]
    fn under_the_class_nothing_waits_for_longer_than_an_interrupt_takes(config in any_config()) {
        let checks = Checks { local: true, entry: true, exit: true };
        let simulation = finished(Config { policy: Policy::Be, checks, ..config });
        let limit_ns = config.costs.interrupt_ns;
        let broken_ns = simulation.strictness().longest_ns;
        prop_assert!(broken_ns <= limit_ns, "a thread of the service waited {broken_ns} ns while a job executed");
        let idle_ns = simulation.conservation().longest_ns;
        prop_assert!(idle_ns <= limit_ns, "a thread waited {idle_ns} ns while a CPU was idle");
    }

    #[test]
    fn it_does_not_matter_in_which_pieces_a_simulation_is_advanced(config in any_config(), piece in 1_u64..5000) {
        let whole = finished(config);
        let mut parts = Simulation::new(config).expect("within the ranges");
        while parts.advance(piece) {}
        prop_assert_eq!(whole.requests(), parts.requests());
        prop_assert_eq!(whole.iterations(), parts.iterations());
        prop_assert_eq!(whole.counters(), parts.counters());
    }
}

#[test]
fn without_any_one_check_the_rule_is_broken_for_more_than_a_tick() {
    for (local, entry, exit) in [(false, true, true), (true, false, true), (true, true, false)] {
        let checks = Checks { local, entry, exit };
        let worst_ns = (0..20)
            .map(|seed| {
                let config = Config { policy: Policy::Be, checks, ..short(seed, 4, 4, 0.85) };
                finished(config).strictness().longest_ns
            })
            .max();
        assert!(worst_ns > Some(4 * MS), "{checks:?}: {worst_ns:?} ns at worst");
    }
}

#[test]
fn linux_leaves_the_service_waiting_while_jobs_execute_under_every_policy_but_fifo() {
    for policy in [Policy::Nice, Policy::Weights, Policy::Idle, Policy::CpuIdle] {
        let broken_ns = finished(Config { policy, ..short(1, 4, 4, 0.85) }).strictness().violation_ns;
        assert!(broken_ns > 50 * MS, "{policy:?}: {broken_ns} ns");
    }
    let fifo = finished(Config { policy: Policy::Fifo, ..short(1, 4, 4, 0.85) });
    assert_eq!(fifo.strictness().longest_ns, 1000);
}

/// Share of one CPU that a job gets beside a service that never sleeps.
#[expect(clippy::cast_precision_loss, reason = "times below 2^52 ns")]
fn share_of_a_job(policy: Policy) -> f64 {
    let mut config = Config { policy, ..short(1, 1, 1, 3.0) };
    config.service.threads = 1;
    config.best_effort.jobs = 1;
    config.phases.best_effort_start_ns = 1000 * MS;
    config.phases.best_effort_stop_ns = 20_000 * MS;
    config.phases.client_end_ns = 20_000 * MS;
    config.phases.limit_ns = 20_000 * MS;
    let simulation = finished(config);
    simulation.samples().last().expect("one at the end").best_effort_cpu_ns as f64 / 19e9
}

#[test]
fn on_one_cpu_shares_are_those_of_the_weights() {
    for (policy, job, service) in [
        (Policy::Nice, 15.0, 1024.0),
        (Policy::Idle, 3.0, 1024.0),
        (Policy::CpuIdle, 3.0, 1024.0),
        (Policy::Weights, 10.0, 102_400.0),
        (Policy::Fifo, 50.0, 950.0),
    ] {
        let (expected, found) = (job / (job + service), share_of_a_job(policy));
        // A slice that began is used up to the next tick: at most two ticks in 19 s.
        assert!(
            (found - expected).abs() <= 0.008 / 19.0 + 0.05 * expected,
            "{policy:?}: {found}, not {expected}"
        );
    }
    assert!(share_of_a_job(Policy::Be) < 0.0001);
}

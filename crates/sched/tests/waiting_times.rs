//! The pool serves the oldest request first: waiting times are those of the queues M/D/c and M/G/c, to the right tail.
//!
//! Without costs and jobs, nothing is left of a scheduler that lets every request run to its end but the queue
//! itself, so that its waiting times can be told exactly.

#![allow(clippy::expect_used, reason = "a test may panic")]
#![allow(clippy::cast_precision_loss, reason = "counts and times below 2^52")]

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rand_core::Rng;
use rand_pcg::Pcg64;
use steelyard_sched::{Config, Costs, Policy, Simulation, WorkLaw};

const QUANTILES: [f64; 3] = [0.5, 0.99, 0.999];
/// Queues that are drawn to see how far two of the same kind differ by chance.
const DRAWN: u64 = 20;

/// A queue: servers, load, law of the work, share of requests that are 50 times as long.
#[derive(Debug, Clone, Copy)]
struct Shape {
    servers: u32,
    load: f64,
    law: WorkLaw,
    long_share: f64,
}

const LONG_FACTOR: f64 = 50.0;
const WORK_NS: f64 = 6e6;
const CONSTANT: (WorkLaw, f64) = (WorkLaw::Constant, 0.0);
const EXPONENTIAL: (WorkLaw, f64) = (WorkLaw::Exponential, 0.0);
const LONG: (WorkLaw, f64) = (WorkLaw::Constant, 0.02);

impl Shape {
    const fn new(servers: u32, load: f64, (law, long_share): (WorkLaw, f64)) -> Self {
        Self { servers, load, law, long_share }
    }

    /// Requests after which a queue has forgotten its past 2000 times.
    ///
    /// SOURCE: Whitt 1989, "Planning queueing simulations", equation 24: relaxation takes some (1 + squared variation of the
    /// work) / (1 - load)^2 requests.
    fn requests(self) -> f64 {
        let (once, squared) = (1.0 - self.long_share, LONG_FACTOR * LONG_FACTOR);
        let mean = once + self.long_share * LONG_FACTOR;
        let moment =
            (once + self.long_share * squared) * if self.law == WorkLaw::Exponential { 2.0 } else { 1.0 };
        (2000.0 * moment / (mean * mean) / (1.0 - self.load).powi(2)).max(300_000.0)
    }

    /// Mean distance of requests over the work of a usual one.
    fn gap(self) -> f64 {
        (1.0 + self.long_share * (LONG_FACTOR - 1.0)) / (self.load * f64::from(self.servers))
    }
}

/// A simulated service of some workers on some CPUs.
fn simulated(shape: Shape, policy: Policy, (cpus, workers): (u32, u32), requests: f64) -> Simulation {
    let mut config = Config { policy, cores: cpus, cache_cores: cpus.min(16), seed: 11, ..Config::default() };
    config.costs = Costs { switch_ns: 0, migration_ns: 0, interrupt_ns: 0, read_ns: 0 };
    // The class lets each request run to its end only if its slice is that long.
    config.class_slice_ns = 1 << 40;
    config.best_effort.jobs = 0;
    config.service.threads = workers;
    config.service.law = shape.law;
    // A reader that takes no time changes nothing.
    config.service.has_reader = workers % 2 == 0;
    config.service.long_share = shape.long_share;
    config.service.long_factor = LONG_FACTOR;
    let gap_ns = shape.gap() * config.service.work_ns as f64;
    config.service.rate_per_s = 1e9 / gap_ns;
    config.phases.best_effort_start_ns = 1;
    config.phases.best_effort_stop_ns = 2;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, below 2^52")]
    let end_ns = (requests * gap_ns) as u64;
    config.phases.client_end_ns = end_ns;
    config.phases.limit_ns = 2 * end_ns + 3_600_000_000_000;
    let mut simulation = Simulation::new(config).expect("within the ranges");
    while simulation.advance(1 << 20) {}
    simulation
}

/// When each request begins in a queue whose servers take the oldest first, from when it comes and its work.
///
/// SOURCE: Kiefer and Wolfowitz 1955, "On the theory of queues with many servers": a request begins when it has come
/// and the server that is free first is free.
fn begins(requests: impl Iterator<Item = (u64, u64)>, servers: u32) -> impl Iterator<Item = u64> {
    let mut free: BinaryHeap<Reverse<u64>> = (0..servers).map(|_| Reverse(0)).collect();
    requests.map(move |(come, work)| {
        let mut first = free.peek_mut().expect("at least one server");
        let begin = first.0.max(come);
        *first = Reverse(begin + work);
        begin
    })
}

/// Waiting times of a simulation over the work of a usual request.
fn waits_of(simulation: &Simulation) -> Vec<f64> {
    simulation.requests().iter().map(|each| (each.started_ns - each.intended_ns) as f64 / WORK_NS).collect()
}

/// Waiting times, over the work of a usual request, of a queue that is drawn here.
fn drawn(shape: Shape, seed: u64) -> Vec<f64> {
    let mut random = Pcg64::new(0xCAFE_F00D_D15E_A5E5 ^ u128::from(seed) << 32, 7);
    let mut uniform = move || ((random.next_u64() >> 11) as f64 + 0.5) / 9_007_199_254_740_992.0;
    let mut come = 0.0;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive and below 2^52")]
    let whole_ns = |times: f64| (times * WORK_NS) as u64;
    let each: Vec<(u64, u64)> = (0..whole_ns(shape.requests() / WORK_NS))
        .map(|_| {
            come -= shape.gap() * uniform().ln();
            let usual = if shape.law == WorkLaw::Exponential { -uniform().ln() } else { 1.0 };
            let work = if uniform() < shape.long_share { usual * LONG_FACTOR } else { usual };
            (whole_ns(come), whole_ns(work))
        })
        .collect();
    let begins = begins(each.iter().copied(), shape.servers);
    each.iter().zip(begins).map(|((come, _), begin)| (begin - come) as f64 / WORK_NS).collect()
}

fn quantile(values: &mut [f64], share: f64) -> f64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place in the slice")]
    let place = (share * values.len() as f64) as usize;
    *values.select_nth_unstable_by(place, f64::total_cmp).1
}

/// Share of the requests that wait for longer than each of some times.
fn shares_beyond(waits: &[f64], times: [f64; 3]) -> [f64; 3] {
    times.map(|time| waits.iter().filter(|wait| **wait > time).count() as f64 / waits.len() as f64)
}

/// Stationary distribution of the number of requests in M/D/c.
///
/// SOURCE: Crommelin 1932, "Delay probability formulae when the holding times are constant": in every service time those
/// in service leave and a Poisson number comes, so that the number after is max(before - c, 0) + Poisson(c load).
fn numbers_in_system(servers: u32, load: f64) -> Vec<f64> {
    const MOST: usize = 900;
    let offered = load * f64::from(servers);
    let mut poisson = vec![(-offered).exp()];
    while poisson.len() < 40 || poisson.last() > Some(&1e-18) {
        poisson.push(poisson[poisson.len() - 1] * offered / poisson.len() as f64);
    }
    let mut shares = vec![0.0; MOST];
    shares[0] = 1.0;
    loop {
        let mut after = vec![0.0; MOST];
        for (before, &share) in shares.iter().enumerate().filter(|(_, share)| **share > 1e-18) {
            let rest = before.saturating_sub(servers as usize);
            for (place, probability) in after[rest..].iter_mut().zip(&poisson) {
                *place += share * probability;
            }
        }
        let change: f64 = shares.iter().zip(&after).map(|(old, new)| (old - new).abs()).sum();
        shares = after;
        if change < 1e-12 {
            return shares;
        }
    }
}

/// Share of the requests of M/D/c that wait for at most a time, in service times.
///
/// SOURCE: Franx 2001, "A simple solution for the M/D/c waiting time distribution", Operations Research Letters 29: for
/// k - 1 <= t < k it is the sum over j < kc of Q(kc - 1 - j) Poisson(j; c load (k - t)), where Q(n) is the share of time with at
/// most n waiting. It is Crommelin's distribution without its alternating signs.
fn share_within(numbers: &[f64], (servers, load): (u32, f64), time: f64) -> f64 {
    let steps = time.floor() + 1.0;
    let mean = load * f64::from(servers) * (steps - time);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive and small")]
    let count = steps as usize * servers as usize;
    let mut within: Vec<f64> = numbers.to_vec();
    for place in 1..within.len() {
        within[place] += within[place - 1];
    }
    let waiting = |most: usize| within[(most + servers as usize).min(within.len() - 1)];
    let mut poisson = (-mean).exp();
    let mut sum = 0.0;
    for come in 0..count {
        sum += waiting(count - 1 - come) * poisson;
        poisson *= mean / (come + 1) as f64;
    }
    sum
}

fn quantile_in_theory(numbers: &[f64], queue: (u32, f64), share: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1000.0);
    if share_within(numbers, queue, 0.0) >= share {
        return 0.0;
    }
    while high - low > 1e-9 {
        let middle = 0.5 * (low + high);
        if share_within(numbers, queue, middle) < share { low = middle } else { high = middle }
    }
    high
}

#[test]
fn the_theory_agrees_with_one_server_in_closed_form() {
    for load in [0.5, 0.85, 0.95] {
        let numbers = numbers_in_system(1, load);
        let mean: f64 = numbers.iter().enumerate().map(|(count, share)| count as f64 * share).sum();
        let closed = load / (2.0 * (1.0 - load)); // Pollaczek and Khinchine
        assert!(((mean / load - 1.0) / closed - 1.0).abs() < 1e-6, "{load}");
        // SOURCE: Erlang 1909: waiting times in M/D/1.
        let erlang = (1.0 - load) * ((load * 1.5).exp() - load * 0.5 * (load * 0.5).exp());
        assert!((share_within(&numbers, (1, load), 1.5) - erlang).abs() < 1e-6, "{load}");
    }
}

/// Beyond which difference, in standard deviations that are estimated from twenty values, a further value is of another
/// kind: t with 19 degrees of freedom exceeds it with probability 1e-4.
const SURELY: f64 = 4.9;

/// Compares how many requests of a simulation wait for longer than some times with what is expected, or else with the mean
/// of queues drawn here. What differs by chance alone is seen from these, since they are as long as the simulation.
fn compare(queue: Shape, times: [f64; 3], expected: Option<[f64; 3]>) {
    let simulation = simulated(queue, Policy::Fifo, (queue.servers, 4 * queue.servers), queue.requests());
    let found = shares_beyond(&waits_of(&simulation), times);
    let others: Vec<[f64; 3]> = (1..=DRAWN).map(|seed| shares_beyond(&drawn(queue, seed), times)).collect();
    for place in 0..3 {
        let each = others.iter().map(|shares| shares[place]);
        let mean = each.clone().sum::<f64>() / DRAWN as f64;
        let variance = each.map(|share| (share - mean).powi(2)).sum::<f64>() / (DRAWN - 1) as f64;
        // Where hardly any request waits so long, all may be the same.
        let variance = variance.max(mean / queue.requests());
        let (right, more) = expected.map_or((mean, 1.0 / DRAWN as f64), |expected| (expected[place], 0.0));
        let error = (variance * (1.0 + more)).sqrt();
        let text = format!(
            "{queue:?}: {:.4} % wait for longer than {:.4} work times, expected {:.4} %, standard error {:.4} %",
            100.0 * found[place],
            times[place],
            100.0 * right,
            100.0 * error
        );
        assert!((found[place] - right).abs() <= SURELY * error, "{text}");
    }
}

const SERVERS: [u32; 5] = [1, 2, 4, 16, 64];
const LOADS: [f64; 3] = [0.5, 0.8, 0.95];

#[test]
fn waiting_times_are_those_of_crommelin_to_the_right_tail() {
    for queue in SERVERS.into_iter().flat_map(|servers| LOADS.map(|load| (servers, load))) {
        let numbers = numbers_in_system(queue.0, queue.1);
        let times = QUANTILES.map(|share| quantile_in_theory(&numbers, queue, share));
        let expected = times.map(|time| 1.0 - share_within(&numbers, queue, time));
        compare(Shape::new(queue.0, queue.1, CONSTANT), times, Some(expected));
    }
}

/// Long requests at 95 % have to be simulated for longer than a test may take; see the last test.
#[test]
fn waiting_times_are_those_of_a_queue_drawn_elsewhere() {
    let shapes = LOADS.map(|load| (load, EXPONENTIAL)).into_iter().chain([(0.5, LONG), (0.8, LONG)]);
    for (servers, (load, law)) in
        SERVERS.into_iter().flat_map(|servers| shapes.clone().map(move |shape| (servers, shape)))
    {
        let shape = Shape::new(servers, load, law);
        let mut waits = drawn(shape, 0);
        compare(shape, QUANTILES.map(|share| quantile(&mut waits, share)), None);
    }
}

#[test]
fn every_request_begins_when_the_oldest_is_served_first() {
    let pools =
        [(1, 1), (1, 8), (4, 3), (4, 4), (4, 5), (4, 16), (4, 2000), (16, 7), (16, 64), (64, 65), (64, 256)];
    let laws = [CONSTANT, EXPONENTIAL, LONG];
    for ((cpus, workers), load) in pools.into_iter().flat_map(|pool| LOADS.map(|load| (pool, load))) {
        for (law, policy) in
            laws.into_iter().flat_map(|law| [Policy::Fifo, Policy::Be].map(|policy| (law, policy)))
        {
            let shape = Shape::new(cpus.min(workers), load, law);
            let simulation = simulated(shape, policy, (cpus, workers), 30_000.0);
            let requests = simulation.requests();
            let expected =
                begins(requests.iter().map(|each| (each.intended_ns, each.work_ns)), shape.servers);
            for (number, (each, begin_ns)) in requests.iter().zip(expected).enumerate() {
                let text = format!(
                    "request {number} of {shape:?} under {policy:?} on {cpus} CPUs by {workers} workers"
                );
                assert_eq!(
                    (each.started_ns, each.finished_ns),
                    (begin_ns, begin_ns + each.work_ns),
                    "{text}"
                );
            }
        }
    }
}

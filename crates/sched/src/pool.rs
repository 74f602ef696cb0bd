//! The service: requests that arrive whether or not it is ready, a thread that reads them, and the workers that take them,
//! the oldest first.

use std::collections::VecDeque;

use crate::config::{Config, WorkLaw};
use crate::random::Random;
use crate::record::Request;
use crate::timeline::NEVER;

/// Requests in order of arrival, and workers that sleep until one comes.
///
/// As in the service that is measured (`crates/load`), a request belongs to nobody until a worker that executes takes it: a
/// worker that was woken for it may find that another one, which was on a CPU already, took it before.
#[derive(Debug)]
pub(crate) struct Pool {
    gaps: Random,
    kinds: Random,
    works: Random,
    /// Mean distance of requests.
    gap_ns: f64,
    pub(crate) requests: Vec<Request>,
    /// The oldest request that nobody has taken.
    oldest: u32,
    /// The oldest request that was not read, nor can be taken.
    read: u32,
    pub(crate) is_reader_asleep: bool,
    /// Workers that wait for a request, the one that has waited longest first.
    asleep: VecDeque<u32>,
    /// When the next request arrives.
    pub(crate) arrival_ns: u64,
    /// Requests that were answered.
    pub(crate) finished: usize,
}

impl Pool {
    pub(crate) fn new(config: &Config) -> Self {
        let mut pool = Self {
            gaps: Random::new(config.seed, 1),
            kinds: Random::new(config.seed, 2),
            works: Random::new(config.seed, 3),
            gap_ns: 1e9 / config.service.rate_per_s,
            requests: Vec::new(),
            oldest: 0,
            read: 0,
            is_reader_asleep: true,
            asleep: (0..config.service.threads).collect(),
            arrival_ns: 0,
            finished: 0,
        };
        pool.plan_arrival(config);
        pool
    }

    /// Whether all requests have come and were answered.
    pub(crate) fn is_done(&self) -> bool {
        self.arrival_ns >= NEVER && self.finished == self.requests.len()
    }

    fn plan_arrival(&mut self, config: &Config) {
        let gap = if config.service.is_poisson { self.gaps.exponential() } else { 1.0 };
        let at_ns = self.arrival_ns + whole(gap * self.gap_ns);
        let is_last = at_ns >= config.phases.client_end_ns || self.requests.len() >= u32::MAX as usize - 1;
        self.arrival_ns = if is_last { NEVER } else { at_ns };
    }

    /// Lets a request arrive; says whether the reader is woken for it.
    pub(crate) fn arrive(&mut self, config: &Config) -> bool {
        let service = &config.service;
        let is_long = service.long_share > 0.0 && self.kinds.uniform() < service.long_share;
        #[expect(clippy::cast_precision_loss, reason = "at most 2^40 ns")]
        let usual = service.work_ns as f64;
        let drawn = match service.law {
            WorkLaw::Constant => usual,
            WorkLaw::Exponential => usual * self.works.exponential(),
        };
        let work_ns = whole(if is_long { drawn * service.long_factor } else { drawn }).max(1);
        let intended_ns = self.arrival_ns;
        self.requests.push(Request { kind: u32::from(is_long), work_ns, intended_ns, ..Request::default() });
        self.plan_arrival(config);
        std::mem::replace(&mut self.is_reader_asleep, false)
    }

    /// Requests that were not read.
    #[inline]
    pub(crate) fn unread(&self) -> u32 {
        #[expect(clippy::cast_possible_truncation, reason = "no more requests are planned than fit")]
        let come = self.requests.len() as u32;
        come - self.read
    }

    /// The reader has read a request; gives the worker that is woken for it, if one sleeps.
    #[inline]
    pub(crate) fn read(&mut self) -> Option<u32> {
        self.read += 1;
        self.asleep.pop_front()
    }

    /// A worker takes the oldest request; gives its number and work.
    #[inline]
    pub(crate) fn take(&mut self, now_ns: u64) -> Option<(u32, u64)> {
        if self.oldest == self.read {
            return None;
        }
        let request = &mut self.requests[self.oldest as usize];
        request.started_ns = now_ns;
        self.oldest += 1;
        Some((self.oldest - 1, request.work_ns))
    }

    /// A worker has answered a request.
    #[inline]
    pub(crate) fn answer(&mut self, number: u32, now_ns: u64) {
        self.requests[number as usize].finished_ns = now_ns;
        self.finished += 1;
    }

    /// A worker that found no request sleeps.
    #[inline]
    pub(crate) fn sleep(&mut self, worker: u32) {
        self.asleep.push_back(worker);
    }
}

/// Rounds a time.
fn whole(time_ns: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive and below 2^60")]
    let whole_ns = (time_ns + 0.5) as u64;
    whole_ns
}

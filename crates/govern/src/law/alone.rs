//! What a service waits when best-effort commands do nothing: only what is beyond that is their doing.

/// The mean and spread of pressure over looks, the newest of which weigh most.
#[derive(Debug, Clone, Copy)]
pub(super) struct Level {
    looks: u32,
    mean: f64,
    variance: f64,
}

/// Looks that count; older ones are forgotten.
const MEMORY: u32 = 100;
/// Looks that old ones weigh as much as.
const FADED: u32 = 8;
/// Standard errors by which two levels must be apart: pressure of queues is skewed, and looks are many.
const SURE: f64 = 3.5;
/// So many looks more are needed the fewer there are.
const FEW: f64 = 4.0;

impl Level {
    pub(super) const fn new() -> Self {
        Self { looks: 0, mean: 0.0, variance: 0.0 }
    }

    pub(super) fn add(&mut self, pressure: f64) {
        self.looks = (self.looks + 1).min(MEMORY);
        let weight = 1.0 / f64::from(self.looks);
        let off = pressure - self.mean;
        self.mean += weight * off;
        self.variance = (1.0 - weight) * (self.variance + weight * off * off);
    }

    /// Lets the looks to come weigh more than those before.
    pub(super) fn fade(&mut self) {
        self.looks = self.looks.min(FADED);
    }

    pub(super) const fn mean(&self) -> f64 {
        self.mean
    }

    pub(super) const fn looks(&self) -> u32 {
        self.looks
    }

    /// How far another level must be above this one to be so for sure.
    pub(super) fn margin(&self, looks: u32) -> f64 {
        // Few looks say little of the spread.
        let sure = SURE * (1.0 + FEW / f64::from(self.looks.max(1)));
        sure * (self.variance * (1.0 / f64::from(looks.max(1)) + 1.0 / f64::from(self.looks.max(1)))).sqrt()
    }
}

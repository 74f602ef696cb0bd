//! Costs that are planted on purpose, so that a study can show that it finds what is there.
//!
//! Both are off by default and stand in the header of the trace. They are busy waiting inside the
//! stamped interval of the sender.
//!
//! - A *switch*: a message of more than so many bytes costs so much more, at whichever endpoint sends it;
//!   half a round trip grows by that time.
//! - *Noise*: endpoint 0 draws one time per operation before it sends. Half a round trip gets half of it.

use crate::CommError;
use crate::clock::{now_ns, wait_until_ns};

/// Longest planted noise of one operation [ns]; laws with heavy tails would now and then block a run.
const LONGEST_NS: f64 = 100e6;

/// A law of positive times.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Law {
    /// `scale * exp(sigma * Z)` with Z standard normal: the median is `scale`.
    LogNormal {
        /// Standard deviation of the logarithm.
        sigma: f64,
        /// Median [ns].
        scale_ns: f64,
    },
    /// `scale * U^(-1/alpha)` with U uniform on (0, 1]: at least `scale` (Pareto, type I).
    Pareto {
        /// Index of the tail.
        alpha: f64,
        /// Smallest value [ns].
        scale_ns: f64,
    },
    /// `scale * (-ln U)^(1/shape)` (Weibull); a shape of 1 is the exponential law.
    Weibull {
        /// Shape.
        shape: f64,
        /// Scale [ns].
        scale_ns: f64,
    },
}

const LAWS: &str = "`lognormal:sigma=S,scale_ns=T`, `pareto:alpha=A,scale_ns=T`, `weibull:shape=K,scale_ns=T`, each number above 0";

impl Law {
    /// Reads a law as it stands on a command line.
    ///
    /// # Errors
    ///
    /// [`CommError::Usage`] with the known laws.
    pub fn parse(text: &str) -> Result<Self, CommError> {
        let wrong = || CommError::usage(format!("`--plant-noise` is `{text}`; allowed: {LAWS}"));
        let (name, arguments) = text.split_once(':').ok_or_else(wrong)?;
        let number = |wanted: &str| {
            let mut found = arguments.split(',').filter_map(|part| part.split_once('='));
            let (_, value) = found.find(|(name, _)| *name == wanted).ok_or_else(wrong)?;
            value.parse::<f64>().ok().filter(|value| value.is_finite() && *value > 0.0).ok_or_else(wrong)
        };
        if arguments.split(',').count() != 2 {
            return Err(wrong());
        }
        let scale_ns = number("scale_ns")?;
        match name {
            "lognormal" => Ok(Self::LogNormal { sigma: number("sigma")?, scale_ns }),
            "pareto" => Ok(Self::Pareto { alpha: number("alpha")?, scale_ns }),
            "weibull" => Ok(Self::Weibull { shape: number("shape")?, scale_ns }),
            _ => Err(wrong()),
        }
    }

    /// One value [ns], at most 100 ms.
    fn draw_ns(self, draws: &mut Draws) -> f64 {
        let value = match self {
            Self::LogNormal { sigma, scale_ns } => scale_ns * (sigma * draws.normal()).exp(),
            Self::Pareto { alpha, scale_ns } => scale_ns * draws.uniform().powf(-1.0 / alpha),
            Self::Weibull { shape, scale_ns } => scale_ns * (-draws.uniform().ln()).powf(1.0 / shape),
        };
        value.min(LONGEST_NS)
    }
}

/// SOURCE: `SplitMix64`, Steele, Lea, Flood (2014), "Fast splittable pseudorandom number generators", as in
/// the reference code of Vigna.
#[derive(Debug, Clone)]
pub(crate) struct Draws {
    state: u64,
}

impl Draws {
    pub(crate) const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    const fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.state;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// A number in (0, 1].
    pub(crate) fn uniform(&mut self) -> f64 {
        // The upper 53 bits, which a float holds exactly.
        (crate::clock::as_f64(self.next() >> 11) + 1.0) * (1.0 / 9_007_199_254_740_992.0)
    }

    /// A standard normal number. SOURCE: Box and Muller (1958), "A note on the generation of random normal
    /// deviates"; the second of each pair is not used.
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// What is planted; nothing by default.
#[derive(Debug, Clone)]
pub(crate) struct Plant {
    switch: Option<(u64, u64)>,
    noise: Option<(Law, Draws)>,
}

impl Plant {
    /// `switch` is bytes and nanoseconds.
    pub(crate) fn new(switch: Option<(u64, u64)>, noise: Option<Law>, seed: u64) -> Self {
        Self { switch, noise: noise.map(|law| (law, Draws::new(seed))) }
    }

    /// Waits as long as sending this message is to cost more.
    #[inline]
    pub(crate) fn pay(&mut self, size: u32) {
        if self.switch.is_none() && self.noise.is_none() {
            return;
        }
        let start_ns = now_ns();
        let mut extra_ns = 0;
        if let Some((bytes, more_ns)) = self.switch
            && u64::from(size) > bytes
        {
            extra_ns += more_ns;
        }
        if let Some((law, draws)) = &mut self.noise {
            extra_ns += to_ns(law.draw_ns(draws));
        }
        wait_until_ns(start_ns + extra_ns);
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive and below 2^53")]
const fn to_ns(value: f64) -> u64 {
    value as u64
}

/// Reads `BYTES:EXTRA_NS`.
pub(crate) fn parse_switch(text: &str) -> Result<(u64, u64), CommError> {
    let read = || {
        let (bytes, extra) = text.split_once(':')?;
        let extra: u64 = extra.parse().ok().filter(|extra| *extra <= 1_000_000_000)?;
        Some((bytes.parse().ok()?, extra))
    };
    read().ok_or_else(|| {
        CommError::usage(format!(
            "`--plant-switch` is `{text}`; allowed: BYTES:EXTRA_NS, whole numbers, at most 1000000000 ns, as in `65536:4000`"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn median_ns(text: &str) -> f64 {
        let law = Law::parse(text).unwrap();
        let mut draws = Draws::new(7);
        let mut values: Vec<f64> = (0..20_001).map(|_| law.draw_ns(&mut draws)).collect();
        crate::clock::median(&mut values)
    }

    #[test]
    fn medians_are_those_of_the_laws() {
        // The standard error of a median of 20 001 values is below 1.2 % for each of these laws.
        let near = |value: f64, truth: f64| assert!((value / truth - 1.0).abs() < 0.05, "{value} {truth}");
        near(median_ns("lognormal:sigma=1.2,scale_ns=4000"), 4000.0);
        near(median_ns("pareto:alpha=2.2,scale_ns=2000"), 2000.0 * 2.0_f64.powf(1.0 / 2.2));
        near(median_ns("weibull:scale_ns=500,shape=1"), 500.0 * std::f64::consts::LN_2);
    }

    #[test]
    fn the_generator_gives_the_reference_values() {
        // SOURCE: splitmix64.c of Vigna, seed 1234567.
        let mut draws = Draws::new(1_234_567);
        assert_eq!(draws.next(), 6_457_827_717_110_365_317);
        assert_eq!(draws.next(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn other_laws_and_numbers_are_refused() {
        for text in [
            "",
            "lognormal",
            "gauss:sigma=1,scale_ns=1",
            "pareto:alpha=0,scale_ns=1",
            "pareto:alpha=inf,scale_ns=1",
            "pareto:alpha=2",
            "pareto:alpha=2,scale_ns=1,x=2",
            "lognormal:alpha=2,scale_ns=1",
        ] {
            let error = Law::parse(text).unwrap_err();
            assert!(error.to_string().contains("`weibull:shape=K,scale_ns=T`"), "{text}");
        }
        for text in ["", "1", "x:1", "1:-1", "1:1000000001"] {
            assert!(parse_switch(text).is_err(), "{text}");
        }
        assert_eq!(parse_switch("65536:4000").unwrap(), (65536, 4000));
    }

    #[test]
    fn a_planted_switch_costs_its_time_above_its_size_only() {
        let mut plant = Plant::new(Some((100, 2_000_000)), None, 1);
        let start = now_ns();
        plant.pay(101);
        assert!(now_ns() - start >= 2_000_000);
        let fastest = (0..20).map(|_| {
            let start = now_ns();
            plant.pay(100);
            now_ns() - start
        });
        assert!(fastest.min().unwrap() < 2_000_000);
    }
}

//! The plan of a load.

use std::net::{SocketAddr, ToSocketAddrs};

use serde_json::Value;

use crate::LoadError;
use crate::orders::drawn::Drawn;
use crate::orders::request::Operation;
use crate::reader::Reader;
use crate::schedule::{Arrivals, Schedule};

/// Format of plan and summary.
pub(super) const FORMAT: &str = "steelyard/http/1";
const KEYS: &str = "format, address, seed, arrivals, rate_per_s, warm_up_ms, measure_ms, drain_limit_ms, connections, rows, mix, spin_us";
/// SOURCE: own choice; nobody waits for longer phases than a day.
const LONGEST_MS: u32 = 86_400_000;
/// SOURCE: own choice; within the usual hard limit of descriptors.
const MOST_CONNECTIONS: u32 = 4096;
/// SOURCE: the service's own limit.
const MOST_ROWS: u32 = 10_000_000;

/// What a driver is asked for.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Plan {
    pub(super) address: SocketAddr,
    pub(super) schedule: Schedule,
    pub(super) warm_up_ms: u64,
    pub(super) drain_limit_ms: u64,
    pub(super) connections: usize,
    pub(super) drawn: Drawn,
    /// Share of each operation, in the order of [`Operation::ALL`]; they sum to 1.
    pub(super) mix: [f64; 4],
    pub(super) spin_us: u64,
}

impl Plan {
    /// Reads a plan, and refuses what is unknown or impossible.
    pub(super) fn parse(text: &str) -> Result<Self, LoadError> {
        let value: Value = serde_json::from_str(text)
            .map_err(|error| LoadError::usage(format!("the plan is not JSON: {error}")))?;
        let mut reader = Reader::new("plan", value)?;
        let format = reader.text("format")?.unwrap_or_default();
        if format != FORMAT {
            return Err(LoadError::usage(format!("`format` is `{format}`; allowed: `{FORMAT}`")));
        }
        let seed = reader.whole("seed", 0, i64::MAX)?.map_or(1, i64::unsigned_abs);
        let rate_per_s = reader.real("rate_per_s", 1e-6, 1e6)?;
        let rate_per_s = rate_per_s
            .ok_or_else(|| LoadError::usage("`rate_per_s` is missing; allowed: numbers from 0.000001"))?;
        let warm_up_ms = u64::from(reader.count("warm_up_ms", 0, LONGEST_MS)?);
        let measure_ms = u64::from(reader.count("measure_ms", 1, LONGEST_MS)?);
        let plan = Self {
            address: address(reader.text("address")?)?,
            schedule: Schedule {
                arrivals: reader.choice("arrivals", &Arrivals::ALL)?.unwrap_or(Arrivals::Poisson),
                rate_per_s,
                duration_ns: (warm_up_ms + measure_ms) * 1_000_000,
                long_share: 0.0,
                seed,
            },
            warm_up_ms,
            drain_limit_ms: u64::from(reader.count("drain_limit_ms", 0, LONGEST_MS)?),
            connections: reader.count("connections", 1, MOST_CONNECTIONS)? as usize,
            drawn: Drawn { seed, rows: u64::from(reader.count("rows", 1, MOST_ROWS)?) },
            mix: mix(reader.object("mix")?)?,
            spin_us: reader.whole("spin_us", 0, 1_000_000)?.map_or(50, i64::unsigned_abs),
        };
        reader.finish(KEYS)?;
        plan.check()
    }

    fn check(self) -> Result<Self, LoadError> {
        #[expect(clippy::cast_precision_loss, reason = "two days in nanoseconds; 53 bits suffice")]
        let expected = self.schedule.rate_per_s * self.schedule.duration_ns as f64 / 1e9;
        if expected > crate::client::MOST_REQUESTS {
            return Err(LoadError::usage(format!(
                "`rate_per_s`, `warm_up_ms` and `measure_ms` ask for {expected:.0} requests; allowed: {:.0}",
                crate::client::MOST_REQUESTS
            )));
        }
        Ok(self)
    }
}

fn address(text: Option<String>) -> Result<SocketAddr, LoadError> {
    let text = text.unwrap_or_default();
    let found = text.to_socket_addrs().ok().and_then(|mut addresses| addresses.next());
    found.filter(|address| address.port() > 0).ok_or_else(|| {
        LoadError::usage(format!("`address` is `{text}`; allowed: `IP:PORT`, as in `127.0.0.1:8080`"))
    })
}

fn mix(mut reader: Reader) -> Result<[f64; 4], LoadError> {
    let mut shares = [0.0; 4];
    for (share, (_, name)) in shares.iter_mut().zip(Operation::ALL) {
        *share = reader.real(name, 0.0, 1e9)?.unwrap_or(0.0);
    }
    reader.finish("create, read, update, list")?;
    let sum: f64 = shares.iter().sum();
    if sum <= 0.0 {
        return Err(LoadError::usage("all shares of `mix` are 0; at least one is to be above"));
    }
    Ok(shares.map(|share| share / sum))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(change: (&str, Value)) -> String {
        let mut plan = serde_json::json!({
            "format": FORMAT, "address": "127.0.0.1:80", "seed": 3, "rate_per_s": 10, "warm_up_ms": 100,
            "measure_ms": 900, "drain_limit_ms": 50, "connections": 4, "rows": 100, "mix": {"read": 3, "list": 1},
        });
        plan[change.0] = change.1;
        plan.to_string()
    }

    #[test]
    fn a_plan_is_read() {
        let plan = Plan::parse(&text(("seed", 3.into()))).unwrap();
        assert_eq!(plan.schedule.duration_ns, 1_000_000_000);
        assert!(
            plan.mix.iter().zip([0.0, 0.75, 0.0, 0.25]).all(|(share, wanted)| (share - wanted).abs() < 1e-12)
        );
        assert_eq!((plan.connections, plan.spin_us, plan.warm_up_ms), (4, 50, 100));
    }

    #[test]
    fn what_is_wrong_is_named_with_what_is_allowed() {
        let cases = [
            (("format", "x".into()), "allowed: `steelyard/http/1`"),
            (("address", "nowhere".into()), "`address` is `nowhere`; allowed: `IP:PORT`"),
            (("rate_per_s", 1e7.into()), "`rate_per_s` is `10000000.0`; allowed: numbers from"),
            (("rate_per_s", Value::Null), "`rate_per_s` is missing"),
            (("connections", 0.into()), "allowed: whole numbers from 1 to 4096"),
            (("mix", serde_json::json!({"read": 0})), "all shares of `mix` are 0"),
            (("mix", serde_json::json!({"delete": 1})), "`mix.delete` is unknown; known here: create"),
            (("other", 1.into()), "`other` is unknown"),
        ];
        for (change, expected) in cases {
            let error = Plan::parse(&text(change)).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        assert!(Plan::parse("{").unwrap_err().to_string().contains("not JSON"));
    }
}

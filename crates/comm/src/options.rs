//! The command line of a run.

use std::path::PathBuf;

use crate::CommError;
use crate::channel::Patience;
use crate::plant::{Law, parse_switch};

/// What carries the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// A pipe in each direction.
    Pipe,
    /// A pair of unix stream sockets.
    Unix,
    /// A TCP connection without Nagle's algorithm.
    Tcp,
    /// A ring in shared memory in each direction.
    Shared,
}

impl Transport {
    /// Every transport with its name.
    pub const ALL: [(Self, &'static str); 4] =
        [(Self::Pipe, "pipe"), (Self::Unix, "unix"), (Self::Tcp, "tcp"), (Self::Shared, "shm")];

    /// As on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }
}

/// Which endpoints this process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Endpoint 0, which starts endpoint 1.
    Both,
    /// Endpoint 0, which waits for endpoint 1 to connect.
    Listen,
    /// Endpoint 1, which connects to endpoint 0.
    Connect,
    /// Endpoint 1, started by endpoint 0.
    Child,
}

/// What one invocation is asked for.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) transport: Transport,
    pub(crate) role: Role,
    pub(crate) plan: Option<PathBuf>,
    pub(crate) out: PathBuf,
    pub(crate) address: Option<String>,
    pub(crate) block: u32,
    pub(crate) probes: u32,
    pub(crate) gap_us: u64,
    pub(crate) budget_ms: Option<u64>,
    pub(crate) canary: Option<PathBuf>,
    pub(crate) cpus: Option<[usize; 2]>,
    pub(crate) switch: Option<(u64, u64)>,
    pub(crate) switch_text: Option<String>,
    pub(crate) noise: Option<Law>,
    pub(crate) noise_text: Option<String>,
    pub(crate) seed: u64,
    /// Descriptors that endpoint 0 hands to its child.
    pub(crate) descriptors: Vec<i32>,
}

const KNOWN: &str = "`--transport`, `--plan`, `--out`, `--block`, `--probes`, `--budget-ms`, `--gap-us`, `--canary`, `--cpus`, `--role`, `--address`, `--plant-switch`, `--plant-noise`, `--plant-seed`";

impl Options {
    /// Reads `--name value` and `--name=value`.
    pub(crate) fn parse(words: &[String]) -> Result<Self, CommError> {
        let mut given = Given::read(words)?;
        let transport = given.choice("--transport", &Transport::ALL)?;
        let role = given.role()?;
        let plan = given.take("--plan").map(PathBuf::from);
        let Some(out) = given.take("--out").map(PathBuf::from) else {
            return Err(CommError::usage("`--out DIR` is missing: the folder for the trace"));
        };
        let switch_text = given.take("--plant-switch");
        let noise_text = given.take("--plant-noise");
        let options = Self {
            transport: match transport {
                Some(transport) => transport,
                None => return Err(missing_transport()),
            },
            role,
            plan,
            out,
            address: given.take("--address"),
            block: given.small("--block", 1, 256)?,
            probes: given.small("--probes", 0, 10)?,
            gap_us: given.number("--gap-us", 0, 60_000_000)?.unwrap_or(0),
            budget_ms: given.number("--budget-ms", 1, 86_400_000)?,
            canary: given.take("--canary").map(PathBuf::from),
            cpus: given.take("--cpus").map(|text| parse_cpus(&text)).transpose()?,
            switch: switch_text.as_deref().map(parse_switch).transpose()?,
            switch_text,
            noise: noise_text.as_deref().map(Law::parse).transpose()?,
            noise_text,
            seed: given.number("--plant-seed", 0, u64::MAX)?.unwrap_or(1),
            descriptors: given.descriptors()?,
        };
        given.finish()?;
        options.check()?;
        Ok(options)
    }

    fn check(&self) -> Result<(), CommError> {
        let is_remote = matches!(self.role, Role::Listen | Role::Connect);
        if is_remote && self.transport != Transport::Tcp {
            return Err(CommError::usage(format!(
                "`--role` is for endpoints on two hosts, which `--transport {}` cannot join; allowed: `tcp`",
                self.transport.name()
            )));
        }
        if is_remote && self.address.is_none() {
            return Err(CommError::usage(
                "`--role` needs `--address HOST:PORT`, the address of the listener",
            ));
        }
        if self.address.is_some() && self.transport != Transport::Tcp {
            return Err(CommError::usage("`--address` is for `--transport tcp` only"));
        }
        if self.plan.is_none() && matches!(self.role, Role::Both | Role::Listen) {
            return Err(CommError::usage("`--plan FILE` is missing: `op,size` lines below that heading"));
        }
        Ok(())
    }

    /// The plan's path; [`Options::check`] has made sure that endpoint 0 has one.
    pub(crate) fn plan_path(&self) -> PathBuf {
        self.plan.clone().unwrap_or_default()
    }

    /// How endpoints on this host wait for each other; `allowed` is how many CPUs this process may use.
    pub(crate) fn patience(&self, allowed: usize) -> Patience {
        match self.cpus {
            Some([first, second]) if first != second => Patience::Spin,
            Some(_) => Patience::None,
            None if allowed < 2 => Patience::None,
            None => Patience::Offer,
        }
    }

    /// CPU of one endpoint.
    pub(crate) fn cpu(&self, rank: u32) -> Option<usize> {
        self.cpus.map(|cpus| cpus[usize::from(rank != 0)])
    }
}

fn missing_transport() -> CommError {
    CommError::usage("`--transport` is missing; allowed: pipe, unix, tcp, shm")
}

/// Reads two CPU numbers as in `0,1`.
pub(crate) fn parse_cpus(text: &str) -> Result<[usize; 2], CommError> {
    let read = || {
        let (first, second) = text.split_once(',')?;
        Some([first.trim().parse().ok()?, second.trim().parse().ok()?])
    };
    read().ok_or_else(|| {
        CommError::usage(format!(
            "`--cpus` is `{text}`; allowed: two CPU numbers, of endpoint 0 and 1, as in `0,1`"
        ))
    })
}

/// Options that were given and not yet taken.
#[derive(Debug)]
pub(crate) struct Given {
    pairs: Vec<(String, String)>,
}

impl Given {
    pub(crate) fn read(words: &[String]) -> Result<Self, CommError> {
        let mut pairs: Vec<(String, String)> = Vec::new();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if !word.starts_with("--") {
                return Err(CommError::usage(format!("`{word}` is not an option; known: {KNOWN}")));
            }
            let (name, value) = match word.split_once('=') {
                Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                None => (word.clone(), words.next().cloned()),
            };
            let Some(value) = value else {
                return Err(CommError::usage(format!("`{name}` needs a value")));
            };
            if pairs.iter().any(|(known, _)| *known == name) {
                return Err(CommError::usage(format!("`{name}` is given twice")));
            }
            pairs.push((name, value));
        }
        Ok(Self { pairs })
    }

    pub(crate) fn take(&mut self, name: &str) -> Option<String> {
        let index = self.pairs.iter().position(|(known, _)| known == name)?;
        Some(self.pairs.swap_remove(index).1)
    }

    pub(crate) fn number(&mut self, name: &str, low: u64, high: u64) -> Result<Option<u64>, CommError> {
        let Some(text) = self.take(name) else { return Ok(None) };
        match text.parse() {
            Ok(number) if (low..=high).contains(&number) => Ok(Some(number)),
            _ => Err(CommError::usage(format!(
                "`{name}` is `{text}`; allowed: whole numbers from {low} to {high}"
            ))),
        }
    }

    fn small(&mut self, name: &str, low: u64, usual: u32) -> Result<u32, CommError> {
        let number = self.number(name, low, 1_000_000_000)?;
        Ok(number.map_or(usual, |number| u32::try_from(number).unwrap_or(u32::MAX)))
    }

    fn choice<T: Copy>(&mut self, name: &str, known: &[(T, &str)]) -> Result<Option<T>, CommError> {
        let Some(text) = self.take(name) else { return Ok(None) };
        if let Some((value, _)) = known.iter().find(|(_, known)| *known == text) {
            return Ok(Some(*value));
        }
        let names: Vec<&str> = known.iter().map(|(_, name)| *name).collect();
        Err(CommError::usage(format!("`{name}` is `{text}`; allowed: {}", names.join(", "))))
    }

    fn role(&mut self) -> Result<Role, CommError> {
        // Endpoint 0 starts its child with a role that is no part of the interface.
        if self.pairs.iter().any(|(name, value)| name == "--role" && value == "child") {
            self.take("--role");
            return Ok(Role::Child);
        }
        let known = [(Role::Listen, "listen"), (Role::Connect, "connect")];
        Ok(self.choice("--role", &known)?.unwrap_or(Role::Both))
    }

    fn descriptors(&mut self) -> Result<Vec<i32>, CommError> {
        let Some(text) = self.take("--descriptors") else { return Ok(Vec::new()) };
        let numbers: Result<_, _> = text.split(',').map(str::parse).collect();
        numbers.map_err(|_| CommError::usage(format!("`--descriptors` is `{text}`; allowed: numbers")))
    }

    pub(crate) fn finish(self) -> Result<(), CommError> {
        match self.pairs.first() {
            None => Ok(()),
            Some((name, _)) => {
                Err(CommError::usage(format!("`{name}` is not an option here; known: {KNOWN}")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Options, CommError> {
        let words: Vec<String> = text.split_ascii_whitespace().map(str::to_owned).collect();
        Options::parse(&words)
    }

    fn problem(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    #[test]
    fn the_usual_command_line_is_read() {
        let options = parse("--transport shm --plan p --out=o --cpus 0,1 --budget-ms 5").unwrap();
        assert_eq!(options.transport, Transport::Shared);
        assert_eq!(options.role, Role::Both);
        assert_eq!((options.block, options.probes, options.gap_us), (256, 10, 0));
        assert_eq!(options.budget_ms, Some(5));
        assert_eq!((options.cpu(0), options.cpu(1)), (Some(0), Some(1)));
        assert_eq!(options.patience(2), Patience::Spin);
        let shared = parse("--transport shm --plan p --out o --cpus 1,1").unwrap();
        assert_eq!(shared.patience(2), Patience::None);
        let free = parse("--transport shm --plan p --out o").unwrap();
        assert_eq!((free.patience(2), free.patience(1)), (Patience::Offer, Patience::None));
    }

    #[test]
    fn what_is_wrong_is_named_with_what_is_allowed() {
        assert!(problem("--out o --plan p").contains("allowed: pipe, unix, tcp, shm"));
        assert!(problem("--transport udp --out o --plan p").contains("is `udp`; allowed: pipe, unix"));
        assert!(problem("--transport shm --plan p").contains("`--out DIR` is missing"));
        assert!(problem("--transport shm --out o").contains("`--plan FILE` is missing"));
        assert!(problem("--transport shm --out o --plan p --block 0").contains("from 1 to"));
        assert!(problem("--transport shm --out o --plan p --gap-us 1.5").contains("is `1.5`"));
        assert!(problem("--transport shm --out o --plan p --cpus 0").contains("as in `0,1`"));
        assert!(problem("--transport shm --out o --plan p --size 4").contains("`--size` is not an option"));
        assert!(problem("--transport shm --out o --out p").contains("given twice"));
        assert!(problem("--transport shm --out").contains("needs a value"));
        assert!(problem("shm").contains("`shm` is not an option"));
        assert!(problem("--transport shm --out o --role listen --plan p").contains("allowed: `tcp`"));
        assert!(problem("--transport tcp --out o --role listen --plan p").contains("--address HOST:PORT"));
        assert!(problem("--transport tcp --out o --role both --plan p").contains("listen, connect"));
        assert!(
            problem("--transport pipe --out o --plan p --address a:1").contains("`--transport tcp` only")
        );
    }
}

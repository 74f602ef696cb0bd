//! `trial.json`: what a trial is asked for.

use std::path::PathBuf;

use serde_json::Value;

use crate::LoadError;
use crate::job::JobKind;
use crate::reader::Reader;
use crate::schedule::Arrivals;
use crate::settings::Class;

/// Format of plan and header.
pub(super) const FORMAT: &str = "steelyard/trial/1";

/// A service of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServiceKind {
    /// A pool of worker threads.
    Pool,
    /// HTTP, with a second tier behind it.
    Web,
    /// A command whose launches are the requests.
    Command,
}

impl ServiceKind {
    const ALL: [(Self, &'static str); 3] =
        [(Self::Pool, "pool"), (Self::Web, "web"), (Self::Command, "command")];
}

/// The service.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ServicePlan {
    pub(super) kind: ServiceKind,
    /// Of the kind `command`.
    pub(super) command: Vec<String>,
    pub(super) threads: u32,
    /// 0: as long as `work_us` takes here.
    pub(super) work_iterations: u64,
    pub(super) work_us: u64,
    pub(super) long_share: f64,
    pub(super) long_factor: f64,
}

/// The client.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ClientPlan {
    pub(super) rate_per_s: f64,
    pub(super) arrivals: Arrivals,
    pub(super) connections: u32,
    pub(super) closed_loop: u32,
}

/// The best-effort jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BestEffortPlan {
    pub(super) kind: JobKind,
    pub(super) jobs: u32,
    pub(super) threads: u32,
}

/// Lengths of the phases [ms].
#[expect(clippy::struct_field_names, reason = "all are times [ms]")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Phases {
    pub(super) warm_up_ms: u64,
    pub(super) baseline_ms: u64,
    pub(super) best_effort_ms: u64,
    pub(super) recovery_ms: u64,
    pub(super) drain_limit_ms: u64,
}

impl Phases {
    /// From the first request that may be due to the last [ms].
    pub(super) const fn load_ms(self) -> u64 {
        self.warm_up_ms + self.baseline_ms + self.best_effort_ms + self.recovery_ms
    }
}

/// How one side is scheduled.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Side {
    pub(crate) class: Option<Class>,
    /// Of the class `fifo`.
    pub(crate) priority: Option<i32>,
    pub(crate) nice: Option<i32>,
    /// Weight of its group, 1 to 10000.
    pub(crate) weight: Option<u32>,
    /// `cpu.idle` of its group.
    pub(crate) cpu_idle: Option<bool>,
}

impl Side {
    /// Whether it needs a group of its own.
    pub(super) const fn is_grouped(&self) -> bool {
        self.weight.is_some() || self.cpu_idle.is_some()
    }
}

/// The policy of a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Policy {
    pub(super) name: String,
    pub(super) service: Side,
    pub(super) best_effort: Side,
    pub(super) scheduler: Option<Vec<String>>,
}

/// A trial.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Plan {
    pub(super) seed: u64,
    pub(super) cpus: Vec<usize>,
    pub(super) client_cpus: Vec<usize>,
    pub(super) service: ServicePlan,
    pub(super) client: ClientPlan,
    pub(super) best_effort: BestEffortPlan,
    pub(super) phases: Phases,
    pub(super) policy: Policy,
    pub(super) groups: Option<PathBuf>,
    pub(super) groups_version: u32,
}

const KEYS: &str =
    "format, seed, cpus, client_cpus, service, client, best_effort, phases, policy, groups, groups_version";

/// SOURCE: own choice; nobody waits for longer phases than a day.
const LONGEST_MS: u32 = 86_400_000;
const MOST_THREADS: u32 = 4096;
const MOST_CONNECTIONS: u32 = 1024;

impl Plan {
    /// Reads a plan, and refuses what is unknown or impossible.
    pub(super) fn parse(text: &str) -> Result<Self, LoadError> {
        let value: Value = serde_json::from_str(text)
            .map_err(|error| LoadError::usage(format!("the plan is not JSON: {error}")))?;
        let mut reader = Reader::new("plan", value)?;
        let format = reader.text("format")?;
        if format.as_deref() != Some(FORMAT) {
            let found = format.unwrap_or_default();
            return Err(LoadError::usage(format!("`format` is `{found}`; allowed: `{FORMAT}`")));
        }
        let service = service(reader.object("service")?)?;
        let plan = Self {
            seed: reader.whole("seed", 0, i64::MAX)?.map_or(0, i64::unsigned_abs),
            cpus: reader.cpus("cpus")?,
            client_cpus: reader.cpus("client_cpus")?,
            client: client(reader.object("client")?, service.kind)?,
            service,
            best_effort: best_effort(reader.object("best_effort")?)?,
            phases: phases(reader.object("phases")?)?,
            policy: policy(reader.object("policy")?)?,
            groups: reader.text("groups")?.map(PathBuf::from),
            groups_version: reader
                .whole("groups_version", 1, 2)?
                .map_or(2, |number| u32::from(number == 2) + 1),
        };
        reader.finish(KEYS)?;
        plan.check()?;
        Ok(plan)
    }

    fn check(&self) -> Result<(), LoadError> {
        #[expect(clippy::cast_precision_loss, reason = "some days in milliseconds fit")]
        let expected = self.client.rate_per_s * self.phases.load_ms() as f64 / 1e3;
        if expected > crate::client::MOST_REQUESTS {
            return Err(LoadError::usage(format!(
                "`client.rate_per_s` and the phases ask for {expected:.0} requests; allowed: {:.0}",
                crate::client::MOST_REQUESTS
            )));
        }
        if self.phases.load_ms() == 0 {
            return Err(LoadError::usage("all `phases` are 0; at least one of them is to last"));
        }
        Ok(())
    }

    /// Whether the client has CPUs that neither service nor jobs use.
    pub(super) fn has_own_client_cpus(&self) -> bool {
        self.client_cpus.iter().all(|cpu| !self.cpus.contains(cpu))
    }
}

fn service(mut reader: Reader) -> Result<ServicePlan, LoadError> {
    let kind = reader.choice("kind", &ServiceKind::ALL)?.unwrap_or(ServiceKind::Pool);
    if kind == ServiceKind::Command {
        let command = reader.need_command("command")?;
        reader.finish("kind, command")?;
        let (work_iterations, work_us, long_share, long_factor) = (0, 0, 0.0, 1.0);
        return Ok(ServicePlan {
            kind,
            command,
            threads: 0,
            work_iterations,
            work_us,
            long_share,
            long_factor,
        });
    }
    let plan = ServicePlan {
        kind,
        command: Vec::new(),
        threads: reader.count("threads", 1, MOST_THREADS)?,
        work_iterations: reader.whole("work_iterations", 0, 1 << 50)?.map_or(0, i64::unsigned_abs),
        work_us: reader.whole("work_us", 0, 60_000_000)?.map_or(0, i64::unsigned_abs),
        long_share: reader.real("long_share", 0.0, 1.0)?.unwrap_or(0.0),
        long_factor: reader.real("long_factor", 0.0, 1e6)?.unwrap_or(1.0),
    };
    reader.finish("kind, threads, work_iterations, work_us, long_share, long_factor")?;
    if plan.work_iterations == 0 && plan.work_us == 0 {
        return Err(LoadError::usage(
            "`service.work_iterations` and `service.work_us` are both 0; give the length of a request by one of them",
        ));
    }
    Ok(plan)
}

fn client(mut reader: Reader, kind: ServiceKind) -> Result<ClientPlan, LoadError> {
    if kind == ServiceKind::Command {
        let closed_loop = reader.count("closed_loop", 1, 1)?;
        reader.finish("closed_loop")?;
        return Ok(ClientPlan { rate_per_s: 0.0, arrivals: Arrivals::Uniform, connections: 0, closed_loop });
    }
    let rate_per_s = reader.real("rate_per_s", 1e-6, 1e7)?;
    let Some(rate_per_s) = rate_per_s else {
        return Err(LoadError::usage("`client.rate_per_s` is missing; allowed: numbers above 0"));
    };
    let plan = ClientPlan {
        rate_per_s,
        arrivals: reader.choice("arrivals", &Arrivals::ALL)?.unwrap_or(Arrivals::Poisson),
        connections: reader.count("connections", 1, MOST_CONNECTIONS)?,
        closed_loop: reader.count("closed_loop", 0, MOST_CONNECTIONS)?,
    };
    reader.finish("rate_per_s, arrivals, connections, closed_loop")?;
    Ok(plan)
}

fn best_effort(mut reader: Reader) -> Result<BestEffortPlan, LoadError> {
    let jobs = reader.count("jobs", 0, MOST_THREADS)?;
    let kind = if jobs == 0 {
        reader.choice("kind", &JobKind::ALL)?.unwrap_or(JobKind::Spin)
    } else {
        reader.need_choice("kind", &JobKind::ALL)?
    };
    let threads = reader.whole("threads", 0, i64::from(MOST_THREADS))?;
    let threads = threads.and_then(|number| u32::try_from(number).ok()).unwrap_or(1).max(1);
    reader.finish("kind, jobs, threads")?;
    Ok(BestEffortPlan { kind, jobs, threads })
}

fn phases(mut reader: Reader) -> Result<Phases, LoadError> {
    let mut length = |key: &str| reader.count(key, 0, LONGEST_MS).map(u64::from);
    let phases = Phases {
        warm_up_ms: length("warm_up_ms")?,
        baseline_ms: length("baseline_ms")?,
        best_effort_ms: length("best_effort_ms")?,
        recovery_ms: length("recovery_ms")?,
        drain_limit_ms: length("drain_limit_ms")?,
    };
    reader.finish("warm_up_ms, baseline_ms, best_effort_ms, recovery_ms, drain_limit_ms")?;
    Ok(phases)
}

const POLICY_KEYS: &str = "name, service_class, best_effort_class, service_priority, service_nice, best_effort_nice, service_weight, best_effort_weight, best_effort_cpu_idle, scheduler";

fn policy(mut reader: Reader) -> Result<Policy, LoadError> {
    let name = reader.text("name")?;
    let number = |found: Option<i64>| found.and_then(|number| i32::try_from(number).ok());
    let weight = |found: Option<i64>| found.and_then(|number| u32::try_from(number).ok());
    let policy = Policy {
        name: name.unwrap_or_default(),
        service: Side {
            class: reader.choice("service_class", &Class::ALL)?,
            // The client has the priority above, so that 99 is left for it at most.
            priority: number(reader.whole("service_priority", 1, 98)?),
            nice: number(reader.whole("service_nice", -20, 19)?),
            weight: weight(reader.whole("service_weight", 1, 10_000)?),
            cpu_idle: None,
        },
        best_effort: Side {
            class: reader.choice("best_effort_class", &Class::ALL)?,
            priority: None,
            nice: number(reader.whole("best_effort_nice", -20, 19)?),
            weight: weight(reader.whole("best_effort_weight", 1, 10_000)?),
            cpu_idle: reader.switch("best_effort_cpu_idle")?,
        },
        scheduler: reader.command("scheduler")?,
    };
    reader.finish(POLICY_KEYS)?;
    if policy.best_effort.class == Some(Class::Fifo) {
        return Err(LoadError::usage(
            "`policy.best_effort_class` is `fifo`; allowed: other, batch, idle: jobs that never sleep would stop the machine",
        ));
    }
    Ok(policy)
}

#[cfg(test)]
mod tests;

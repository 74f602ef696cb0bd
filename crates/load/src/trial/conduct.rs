//! The conductor: starts the parts with the settings of the policy, keeps the phases, and ends everything.
//!
//! The conductor has the CPUs of the client; where the service is of the class `fifo`, it has that class with
//! the client's priority, so that phases begin when they should. It sleeps but for a sample every 100 ms.

use std::fs;
use std::path::Path;

use nix::sys::signal::Signal;
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::LoadError;
use crate::clock::{now_ns, wait_until};
use crate::iterations::{Counter, IterationLog};
use crate::part::Part;
use crate::protocol::Protocol;
use crate::record::{create_file, file_error};
use crate::service::moderation_words;
use crate::settings::Class;
use crate::trial::applied::{Settings, client_side};
use crate::trial::groups::{Groups, check_throttling, remove_leftovers};
use crate::trial::header::{Header, first_line};
use crate::trial::plan::{Plan, ServiceKind, Side};
use crate::trial::samples::Sampler;
use crate::trial::scheduler::Scheduler;
use crate::work::{Calibration, calibrate, measure};

/// SOURCE: own choice; a part is ready in milliseconds, in some seconds under emulation on a busy host.
const READY_LIMIT_MS: u64 = 120_000;
/// SOURCE: the format of a trial (`src/steelyard/studies/colocation/trial.py`).
const SAMPLE_NS: u64 = 100_000_000;
/// SOURCE: own choice; from the order to the first request, so that the client sleeps when it is due.
const LEAD_NS: u64 = 100_000_000;
/// SOURCE: own choice; how long a job that was told to end may take once the load is over.
const END_LIMIT_NS: u64 = 10_000_000_000;

/// Everything that must end with the trial, in the order in which it ends.
#[derive(Debug, Default)]
struct Parts {
    client: Option<Part>,
    services: Vec<Part>,
    jobs: Vec<Part>,
    scheduler: Option<Scheduler>,
    groups: Option<Groups>,
}

/// A trial in progress.
#[derive(Debug)]
struct Conductor<'plan> {
    plan: &'plan Plan,
    folder: &'plan Path,
    header: Header,
    settings: Settings,
}

/// Conducts a trial and leaves its folder.
pub(super) fn conduct(
    plan: &Plan,
    text: &str,
    folder: &Path,
    is_unthrottled_allowed: bool,
) -> Result<(), LoadError> {
    if plan.policy.service.class == Some(Class::Fifo) && !is_unthrottled_allowed {
        check_throttling(Path::new("/"))?;
    }
    fs::create_dir_all(folder).map_err(|error| file_error(folder, &error))?;
    let log = IterationLog::new(create_file(&folder.join("iterations.bin"), 0)?, Counter::create()?);
    let path = folder.join("trial.json");
    fs::write(&path, text).map_err(|error| file_error(&path, &error))?;
    let mut header = Header::new(folder, &plan.cpus);
    header.set("client_cpus", json!(plan.client_cpus));
    header.set("autogroup", json!(first_line("/proc/sys/kernel/sched_autogroup_enabled")));
    header.set("rt_runtime_us", json!(first_line("/proc/sys/kernel/sched_rt_runtime_us")));
    header.write()?;
    if let Some(groups) = &plan.groups {
        header.set("groups_left_over", json!(remove_leftovers(groups)));
    }
    let mut conductor = Conductor { plan, folder, header, settings: Settings::default() };
    let mut parts = Parts::default();
    let result = conductor.execute(&mut parts, &log);
    // All parts end here, the load first, so that jobs that were frozen get a CPU to end on.
    drop(parts);
    conductor.finish(&log, result)
}

impl Conductor<'_> {
    fn execute(&mut self, parts: &mut Parts, log: &IterationLog) -> Result<(), LoadError> {
        let is_command = self.plan.service.kind == ServiceKind::Command;
        let work = if is_command { None } else { Some(self.calibrate()?) };
        parts.groups = Groups::create(self.plan, &mut self.settings);
        if let Some(words) = &self.plan.policy.scheduler {
            match Scheduler::start(words, &self.folder.join("scheduler.json")) {
                Ok(scheduler) => parts.scheduler = Some(scheduler),
                Err(LoadError::Interrupted { signal }) => return Err(LoadError::Interrupted { signal }),
                Err(error) => {
                    self.settings.miss("scheduler", &json!(words), &error.to_string());
                    let message = format!("the scheduler of the policy could not be started: {error}");
                    return Err(LoadError::capability(message, "start it by hand and read what it says"));
                }
            }
            self.settings.applied.push(json!({
                "setting": "scheduler", "value": words, "where": "/sys/kernel/sched_ext/state",
            }));
        }
        if let Some(work) = work {
            let address = self.start_service(parts, work)?;
            self.start_client(parts, &address)?;
        } else {
            self.start_launches(parts)?;
        }
        self.start_jobs(parts, log)?;
        self.set_own_class();
        self.settings.check()?;
        self.measure(parts)
    }

    /// Finds how long a request is, before anything else runs.
    fn calibrate(&mut self) -> Result<Calibration, LoadError> {
        let service = &self.plan.service;
        let (cpu, iterations, work_us) = (self.plan.cpus[0], service.work_iterations, service.work_us);
        // A thread of its own: this one keeps its CPUs.
        let thread = std::thread::spawn(move || {
            crate::settings::set_cpus(Pid::from_raw(0), &[cpu])?;
            Ok(if iterations > 0 { measure(iterations) } else { calibrate(work_us) })
        });
        let ended: std::io::Result<Calibration> =
            thread.join().unwrap_or_else(|_| Err(std::io::Error::other("the thread has panicked")));
        let work = ended.map_err(|error| LoadError::system("timing a request", error))?;
        self.header.set("work_iterations", json!(work.iterations));
        self.header.set("work_ns", json!(work.work_ns));
        self.header.set("work_attempts", json!(work.attempts));
        Ok(work)
    }

    /// Starts a part, puts it into its group, sets it, and lets it begin.
    fn start(&mut self, name: &str, words: &[String], groups: Option<&Groups>) -> Result<Part, LoadError> {
        let mut part = Part::start(name, words)?;
        let policy = &self.plan.policy;
        let is_best_effort = name.starts_with("best_effort");
        if let Some(groups) = groups {
            groups.add(name, part.pid(), is_best_effort, &mut self.settings);
        }
        let (side, cpus) = match name {
            "client" => (client_side(&policy.service), &self.plan.client_cpus),
            _ if is_best_effort => (policy.best_effort.clone(), &self.plan.cpus),
            _ => (policy.service.clone(), &self.plan.cpus),
        };
        self.settings.set_process(name, part.pid(), &side, cpus);
        part.order("begin")?;
        Ok(part)
    }

    /// Starts the tiers of the service, the last first. Gives the address of the front.
    fn start_service(&mut self, parts: &mut Parts, work: Calibration) -> Result<String, LoadError> {
        let plan = &self.plan.service;
        let mut words = vec![
            "serve".to_owned(),
            format!("--threads={}", plan.threads),
            format!("--work-iterations={}", work.iterations),
            format!("--long-factor={}", plan.long_factor),
        ];
        if plan.kind == ServiceKind::Web {
            let tier = moderation_words(plan.threads, work.iterations, plan.long_factor);
            let mut moderation = self.start("service_moderation", &tier, parts.groups.as_ref())?;
            let place = moderation.await_line("ready", READY_LIMIT_MS)?;
            parts.services.push(moderation);
            words.push("--listen=tcp:127.0.0.1:0".to_owned());
            words.push(format!("--protocol={}", Protocol::Http.name()));
            words.push(format!("--moderation={place}"));
        } else {
            words.push(format!("--listen=unix:@steelyard-trial-{}-{}", std::process::id(), now_ns()));
        }
        let mut service = self.start("service", &words, parts.groups.as_ref())?;
        let address = service.await_line("ready", READY_LIMIT_MS)?;
        parts.services.push(service);
        Ok(address)
    }

    fn start_client(&mut self, parts: &mut Parts, address: &str) -> Result<(), LoadError> {
        let (plan, client) = (self.plan, &self.plan.client);
        let protocol = if plan.service.kind == ServiceKind::Web { Protocol::Http } else { Protocol::Frames };
        // A sender that shares its CPU with the service would take from it what it spins.
        let spin_us = if plan.has_own_client_cpus() { 50 } else { 0 };
        let words = [
            "request".to_owned(),
            format!("--connect={address}"),
            format!("--protocol={}", protocol.name()),
            format!("--rate={}", client.rate_per_s),
            format!("--duration-ms={}", plan.phases.load_ms()),
            format!("--arrivals={}", client.arrivals.name()),
            format!("--seed={}", plan.seed),
            format!("--connections={}", client.connections),
            format!("--closed-loop={}", client.closed_loop),
            format!("--long-share={}", plan.service.long_share),
            format!("--drain-ms={}", plan.phases.drain_limit_ms),
            format!("--spin-us={spin_us}"),
            format!("--out={}", self.folder.join("requests.bin").display()),
        ];
        let mut part = self.start("client", &words, parts.groups.as_ref())?;
        part.await_line("ready", READY_LIMIT_MS)?;
        parts.client = Some(part);
        Ok(())
    }

    /// Starts what launches the command, with the settings of the service, which the command inherits.
    fn start_launches(&mut self, parts: &mut Parts) -> Result<(), LoadError> {
        let phases = self.plan.phases;
        let words = [
            "launches".to_owned(),
            format!("--command={}", json!(self.plan.service.command)),
            format!("--duration-ms={}", phases.load_ms()),
            format!("--drain-ms={}", phases.drain_limit_ms),
            format!("--out={}", self.folder.join("requests.bin").display()),
        ];
        let mut part = self.start("service", &words, parts.groups.as_ref())?;
        part.await_line("ready", READY_LIMIT_MS)?;
        parts.client = Some(part);
        Ok(())
    }

    fn start_jobs(&mut self, parts: &mut Parts, log: &IterationLog) -> Result<(), LoadError> {
        let plan = &self.plan.best_effort;
        for job in 0..plan.jobs {
            let words = [
                plan.kind.name().to_owned(),
                format!("--job={job}"),
                format!("--threads={}", plan.threads),
                format!("--seed={}", self.plan.seed),
                format!("--counter={}", log.counter.number()),
                format!("--out={}", self.folder.join("iterations.bin").display()),
            ];
            let part = self.start(&format!("best_effort_{job}"), &words, parts.groups.as_ref())?;
            parts.jobs.push(part);
        }
        parts.jobs.iter_mut().try_for_each(|job| job.await_line("ready", READY_LIMIT_MS).map(|_| ()))
    }

    fn set_own_class(&mut self) {
        let me = nix::unistd::gettid();
        let mut side = client_side(&self.plan.policy.service);
        if side.class != Some(Class::Fifo) {
            side = Side::default();
        }
        self.settings.set_process("conductor", me, &side, &self.plan.client_cpus);
    }

    fn measure(&mut self, parts: &mut Parts) -> Result<(), LoadError> {
        let phases = self.plan.phases;
        let mut sampler = Sampler::create(&self.folder.join("samples.bin"), &self.plan.cpus)?;
        let processes = |parts: &[Part]| parts.iter().map(Part::pid).collect::<Vec<_>>();
        let (services, jobs) = (processes(&parts.services), processes(&parts.jobs));
        let start_ns = now_ns() + LEAD_NS;
        if let Some(client) = &mut parts.client {
            client.order(&format!("go {start_ns}"))?;
        }
        let baseline_ns = start_ns + phases.warm_up_ms * 1_000_000;
        let begin_ns = baseline_ns + phases.baseline_ms * 1_000_000;
        let stop_ns = begin_ns + phases.best_effort_ms * 1_000_000;
        let limit_ns = start_ns + (phases.load_ms() + phases.drain_limit_ms) * 1_000_000 + END_LIMIT_NS;
        self.header.set("start_ns", json!(start_ns));
        self.header.set("baseline_start_ns", json!(baseline_ns));
        self.keep_settings();
        self.header.write()?;
        let (mut is_begun, mut is_stopped) = (jobs.is_empty(), jobs.is_empty());
        let mut next_sample_ns = start_ns;
        loop {
            let mut wake_ns = next_sample_ns;
            wake_ns = if is_begun { wake_ns } else { wake_ns.min(begin_ns) };
            wake_ns = if is_stopped { wake_ns } else { wake_ns.min(stop_ns) };
            wait_until(wake_ns, 0);
            crate::signal::check()?;
            if !is_begun && now_ns() >= begin_ns {
                is_begun = true;
                self.header.set("best_effort_start_ns", json!(now_ns()));
                parts.jobs.iter_mut().try_for_each(|job| job.order("go"))?;
            }
            if !is_stopped && now_ns() >= stop_ns {
                is_stopped = true;
                self.header.set("best_effort_stop_ns", json!(now_ns()));
                parts.jobs.iter_mut().for_each(|job| job.signal(Signal::SIGTERM));
            }
            if now_ns() < next_sample_ns {
                continue;
            }
            sampler.add(&services, &jobs)?;
            // A sample that is late is not made up for.
            next_sample_ns += SAMPLE_NS * ((now_ns() - next_sample_ns) / SAMPLE_NS + 1);
            self.check_parts(parts, is_stopped)?;
            let Some(client) = &mut parts.client else { break };
            if client.has_answer(0)? {
                let summary = client.await_line("", READY_LIMIT_MS)?;
                self.keep_summary(&summary)?;
                break;
            }
            if now_ns() >= limit_ns {
                return Err(LoadError::Failed("the client did not end after the drain".to_owned()));
            }
        }
        self.end_jobs(parts)?;
        sampler.add(&services, &jobs)
    }

    /// Fails if a part is gone before its time.
    fn check_parts(&mut self, parts: &mut Parts, is_stopped: bool) -> Result<(), LoadError> {
        let jobs: &mut [Part] = if is_stopped { &mut [] } else { &mut parts.jobs };
        for part in parts.services.iter_mut().chain(jobs) {
            if part.ended().is_some() {
                return Err(part.lost());
            }
        }
        if let Some(scheduler) = &mut parts.scheduler
            && !scheduler.is_active()
        {
            self.header.set("scheduler_lost_ns", json!(now_ns()));
            return Err(LoadError::Failed("the scheduler of the policy is not active any more".to_owned()));
        }
        Ok(())
    }

    fn keep_settings(&mut self) {
        self.header.set("applied", json!(self.settings.applied));
        self.header.set("missing", json!(self.settings.missing));
    }

    fn keep_summary(&mut self, line: &str) -> Result<(), LoadError> {
        let summary: Value = serde_json::from_str(line).unwrap_or(Value::Null);
        self.header.set("client_end_ns", summary["client_end_ns"].clone());
        let error = summary["error"].as_str().map(|error| LoadError::Failed(error.to_owned()));
        self.header.set("client", summary);
        error.map_or(Ok(()), Err)
    }

    /// Waits for jobs that were told to end; the load is over, so that they get the CPU for it.
    fn end_jobs(&mut self, parts: &mut Parts) -> Result<(), LoadError> {
        let limit_ns = now_ns() + END_LIMIT_NS;
        let mut killed = 0;
        for job in &mut parts.jobs {
            job.signal(Signal::SIGTERM);
            if !job.await_end(limit_ns) {
                job.signal(Signal::SIGKILL);
                killed += 1;
            } else if !job.ended().is_some_and(|status| status.success()) {
                return Err(job.lost());
            }
        }
        self.header.set("jobs_killed", json!(killed));
        self.header.set("best_effort_end_ns", json!(now_ns()));
        Ok(())
    }

    /// Completes the files, whatever has happened.
    fn finish(mut self, log: &IterationLog, result: Result<(), LoadError>) -> Result<(), LoadError> {
        let completed = log.finish();
        for name in ["requests.bin", "samples.bin"] {
            let path = self.folder.join(name);
            if !path.exists() {
                create_file(&path, 0)?;
            }
        }
        self.keep_settings();
        let result = result.and(completed);
        self.header.set("end_ns", json!(now_ns()));
        self.header.set("is_complete", json!(result.is_ok()));
        self.header.set("ended_by", json!(result.as_ref().err().map(ToString::to_string)));
        self.header.write()?;
        result
    }
}

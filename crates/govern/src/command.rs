use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::json;
use steelyard_host::HostRoot;
use steelyard_host::cgroup::Layout;

use crate::background::background;
use crate::daemon::detach;
use crate::governor::{Task, govern};
use crate::home::{CpuHome, Version};
use crate::instance::{self, Instance};
use crate::law::Settings;
use crate::options::Given;
use crate::status::Status;
use crate::{GovernError, Home, Journal, read_class};

const NS_PER_MS: f64 = 1e6;

/// Text of `--help`.
const USAGE: &str = "\
Execute commands best-effort, and throttle them while a service waits for CPUs.

Usage:
  steelyard-govern background [--quiet] [--require class|idle] [--status FILE] -- COMMAND...
  steelyard-govern start [--foreground] [--service GROUP]... [--group GROUP]... [OPTIONS]
  steelyard-govern stop | restore
  steelyard-govern status [--json]

`background` becomes the command. `start` starts the governor, `stop` ends it and restores everything,
`restore` undoes what a killed governor left.

Options:
  --quiet                do not say by which means the command stands back
  --require LEVEL        fail unless it is `class` or at least `idle`
  --status FILE          write what was done for the command as JSON
  --foreground           stay, print `ready` when at work, end on SIGTERM
  --service GROUP        control group of a service; several times for several. Without it everything
                         that is not best-effort is protected
  --group GROUP          control group to throttle instead of `steelyard-background`
  --state DIR            folder of its state [/run/steelyard-scheduler, or below XDG_RUNTIME_DIR]
  --pressure-percent N   share of waiting from which commands are throttled, 0.1 to 100 [5]
  --calm-percent N       share of waiting below which a service is calm, 0.01 to the above [1]
  --calm-ms N            calm time before a release, 0 to 600000 [1000]; doubles up to 16 times
  --park-limit-ms N      longest time without any progress, 100 to 600000 [10000]
  --blink-ms N           how long parked commands then run, 1 to 1000 [50]

Exit codes: 0 done, 2 wrong request, 3 this host or user cannot do it, 126 the command cannot be run,
127 there is no such command; otherwise the command's own.

Examples:
  steelyard-govern background -- make -j4
  steelyard-govern start --service /sys/fs/cgroup/system.slice/web.service
";

/// Executes one command line, without the program's name; gives the exit code.
///
/// # Errors
///
/// [`GovernError`] of each kind; `background` comes back only with one.
pub fn execute(words: &[OsString], stdout: &mut dyn Write) -> Result<u8, GovernError> {
    let (verb, rest) =
        words.split_first().map_or(("--help", words), |(verb, rest)| (verb.to_str().unwrap_or(""), rest));
    let ours = rest.split(|word| word == "--").next().unwrap_or_default();
    if matches!(verb, "--help" | "-h") || ours.iter().any(|word| word == "--help" || word == "-h") {
        return print(stdout, USAGE);
    }
    let given = Given::read(rest, &["--quiet", "--foreground", "--json"])?;
    if verb != "background" && !given.command.is_empty() {
        return Err(GovernError::usage(format!("`{verb}` takes no command")));
    }
    match verb {
        "background" => background(given).map(|()| 0),
        "start" => start(given, stdout),
        "stop" => stop(given, stdout),
        "status" => status(given, stdout),
        "restore" => restore(given, stdout),
        other => {
            let verbs = "`background`, `start`, `stop`, `status`, `restore`";
            Err(GovernError::usage(format!("`{other}` is not a verb; allowed: {verbs}")))
        }
    }
}

fn print(stdout: &mut dyn Write, text: &str) -> Result<u8, GovernError> {
    stdout
        .write_all(text.as_bytes())
        .map_err(|error| GovernError::system("cannot write to standard output", error))?;
    Ok(0)
}

fn state_of(given: &mut Given) -> Result<PathBuf, GovernError> {
    let state = given.path("--state").map_or_else(instance::default_state, Ok)?;
    std::path::absolute(&state).map_err(|source| GovernError::writing(&state, source))
}

fn start(mut given: Given, stdout: &mut dyn Write) -> Result<u8, GovernError> {
    let is_foreground = given.flag("--foreground");
    let state = state_of(&mut given)?;
    let services = groups_of(&mut given, "--service")?;
    let groups = groups_of(&mut given, "--group")?;
    let settings = settings(&mut given)?;
    given.finish()?;
    if is_foreground {
        return govern_here(state, &services, &groups, settings, stdout);
    }
    fs::create_dir_all(&state).map_err(|source| GovernError::writing(&state, source))?;
    let answer = detach(&state, |ready| govern_here(state.clone(), &services, &groups, settings, ready))?;
    print(stdout, answer)
}

/// Control groups of an option: a daemon has another working folder.
fn groups_of(given: &mut Given, name: &str) -> Result<Vec<PathBuf>, GovernError> {
    let paths = given.values(name).into_iter().map(|text| {
        let problem = |_| GovernError::usage(format!("`{name} {text}`: no control group is there"));
        fs::canonicalize(&text).map_err(problem)
    });
    paths.collect()
}

fn govern_here(
    state: PathBuf,
    services: &[PathBuf],
    groups: &[PathBuf],
    settings: Settings,
    ready: &mut dyn Write,
) -> Result<u8, GovernError> {
    let Some(_instance) = Instance::take(&state)? else {
        return print(ready, "already started\n");
    };
    Journal::restore_abandoned(&state)?;
    let is_own = groups.is_empty();
    let home = if is_own {
        let home = Home::claim(&Layout::discover(Path::new("/")).unwrap_or_default());
        home.sweep();
        // Without a CPU controller the freezer is left, and `govern` says so where there is neither.
        let _ = home.weaken();
        home
    } else {
        named_home(groups, services)?
    };
    let task = Task { state, home, services: services.to_vec(), settings };
    let answer = govern(&task, ready);
    if is_own {
        task.home.remove();
    }
    answer.map(|()| 0)
}

/// Groups somebody has named: by their files it is clear what each is for.
fn named_home(groups: &[PathBuf], services: &[PathBuf]) -> Result<Home, GovernError> {
    let mut home = Home::default();
    for group in groups {
        let refuse = |why: &str| Err(GovernError::usage(format!("`--group {}`: {why}", group.display())));
        if !group.join("cgroup.procs").exists() {
            return refuse("no control group is there");
        }
        if crate::home::processes_below(group).contains(&crate::process::Identity::own().process_id) {
            return refuse("the governor itself is in it");
        }
        if services.iter().any(|service| service.starts_with(group)) {
            return refuse("a service that is to be protected is in it");
        }
        if group.join("cgroup.freeze").exists() {
            let named = Home::of_unified(group.clone());
            home.cpu = named.cpu.or(home.cpu);
            home.unified = named.unified;
        } else if group.join("cpu.cfs_quota_us").exists() {
            home.cpu = Some(CpuHome { path: group.clone(), version: Version::V1 });
        } else if group.join("freezer.state").exists() {
            home.freezer = Some(group.clone());
        } else {
            return refuse("it has neither a quota nor a freezer (a hierarchy's root has none)");
        }
    }
    Ok(home)
}

fn settings(given: &mut Given) -> Result<Settings, GovernError> {
    #[expect(clippy::cast_precision_loss, reason = "a number of CPUs")]
    let cpus = std::thread::available_parallelism().map_or(1.0, |count| count.get() as f64);
    let mut settings = Settings::for_cpus(cpus);
    if let Some(percent) = given.number("--pressure-percent", 0.1, 100.0)? {
        settings.high = percent / 100.0;
        settings.low = settings.low.min(settings.high);
    }
    if let Some(percent) = given.number("--calm-percent", 0.01, settings.high * 100.0)? {
        settings.low = percent / 100.0;
    }
    let limit_factor = settings.calm_limit_ns / settings.calm_ns;
    if let Some(calm_ns) = milliseconds(given, "--calm-ms", 0.0, 600_000.0)? {
        settings.calm_ns = calm_ns;
        settings.calm_limit_ns = calm_ns * limit_factor;
    }
    if let Some(limit_ns) = milliseconds(given, "--park-limit-ms", 100.0, 600_000.0)? {
        settings.park_limit_ns = limit_ns;
    }
    if let Some(blink_ns) = milliseconds(given, "--blink-ms", 1.0, 1000.0)? {
        settings.blink_ns = blink_ns;
    }
    Ok(settings)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded above and not negative")]
fn milliseconds(given: &mut Given, name: &str, least: f64, most: f64) -> Result<Option<u64>, GovernError> {
    Ok(given.number(name, least, most)?.map(|number| (number * NS_PER_MS) as u64))
}

fn stop(mut given: Given, stdout: &mut dyn Write) -> Result<u8, GovernError> {
    let state = state_of(&mut given)?;
    given.finish()?;
    let was_there = instance::end(&state)?;
    let restored = Journal::restore_abandoned(&state)?;
    Status::remove(&state);
    print(
        stdout,
        match (was_there, restored) {
            (true, _) => "stopped\n",
            (false, 0) => "not started\n",
            (false, _) => "restored what a killed governor left\n",
        },
    )
}

fn restore(mut given: Given, stdout: &mut dyn Write) -> Result<u8, GovernError> {
    let state = state_of(&mut given)?;
    given.finish()?;
    let count = Journal::restore_abandoned(&state)?;
    print(
        stdout,
        &if count == 0 { "nothing to restore\n".to_owned() } else { format!("restored {count} files\n") },
    )
}

fn status(mut given: Given, stdout: &mut dyn Write) -> Result<u8, GovernError> {
    let is_json = given.flag("--json");
    let places = given.path("--state").map_or_else(instance::visible_states, |state| vec![state]);
    given.finish()?;
    let governor = places.iter().find_map(|state| instance::living(state).and_then(|_| Status::read(state)));
    if is_json {
        let class = read_class(&HostRoot::system());
        let answer = json!({"class": class, "governor": governor});
        return print(stdout, &format!("{answer}\n"));
    }
    match governor {
        None => print(stdout, "the governor is not started\n"),
        Some(status) => {
            let quota = status.quota_cpus.map_or(String::new(), |cpus| format!(" to {cpus:.2} CPUs"));
            let text = format!(
                "the governor watches {}\nbest-effort: {}{quota}\n",
                status.watches, status.allowance
            );
            print(stdout, &text)
        }
    }
}

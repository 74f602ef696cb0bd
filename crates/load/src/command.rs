use std::io::Write;

use serde_json::json;

use crate::LoadError;
use crate::address::Address;
use crate::client::Client;
use crate::control::{say, wait_for};
use crate::job::{Job, JobKind};
use crate::launches::Launches;
use crate::options::Given;
use crate::part::Part;
use crate::protocol::Protocol;
use crate::schedule::{Arrivals, Schedule};
use crate::service::{Service, lengthen, moderation_words};
use crate::work::calibrate;

/// Text of `--help`.
pub const USAGE: &str = "\
A service under load, best-effort jobs beside it, and a conductor that measures who waits for whom.

Usage:
  steelyard-load trial --plan trial.json --out DIR [--allow-unthrottled]
  steelyard-load serve --listen ADDRESS (--work-us N | --work-iterations N) [--threads N] [--long-factor X]
                 [--protocol frames|http] [--moderation ADDRESS]
  steelyard-load web --listen ADDRESS (--work-us N | --work-iterations N) [--threads N] [--long-factor X]
  steelyard-load request --connect ADDRESS --rate X --duration-ms N [--arrivals poisson|uniform] [--seed N]
                 [--protocol frames|http] [--connections N] [--closed-loop N] [--long-share X] [--drain-ms N]
                 [--spin-us N] [--out FILE] [--json]
  steelyard-load http --plan FILE --out DIR
  steelyard-load resize --out FILE [--threads N] [--duration-ms N] [--seed N]
  steelyard-load spin --out FILE [--threads N] [--duration-ms N]
  steelyard-load park --seconds N [--cpus LIST] [--hogs N] [--class idle|batch|other] [--work cpu,tcp,file]
                 [--kill N] [--before-ms N] [--after-limit-s N] [--units N] [--unit-iterations N]
                 [--scratch DIR] [--out FILE]
  steelyard-load calibrate --work-us N [--cpus LIST]

ADDRESS is `unix:@NAME`, `unix:PATH` or `tcp:IP:PORT` of the loopback device.

`trial` conducts one trial: `src/steelyard/studies/colocation/trial.py` describes its plan and its files.
`serve` executes a loop of fixed length per request; `--work-us` finds the length that takes so long here.
`web` is an HTTP service of two tiers: for a long request the front asks the moderation, a second process,
for what it has beyond a usual one.
`request` sends when requests are due, whatever the answers do, and prints percentiles; `--closed-loop N`
lets N clients wait for their answers instead, to show what such a client hides.
`http` sends orders to the service of the replication study when they are due, over as many connections as
the plan says, checks every answer, and leaves `requests.bin` and `http.json`.
`resize` scales an image of 1024 x 768 pixels to 320 x 240 again and again, and compares every result with
the first; `spin` executes a loop. Every finished iteration is stamped. SIGTERM ends both.
`park` lets ordinary processes take the CPUs of best-effort ones for some seconds: a computation, a service
on a TCP connection with keep-alive, a writer of a file; they must end with the right answer. With `--kill N`
it kills N frozen processes and tells how long each lived on. It answers in JSON.
`calibrate` prints how long the loop of a request must be to take a given time here, the best of many.

Exit codes: 0 done, 1 the system refused, 2 wrong request, 3 this machine cannot do it, 4 a part failed,
128 + n ended by signal n. What was recorded can be read in each case.

Example:
  steelyard-load serve --listen unix:@demo --threads 2 --work-us 2000 &
  steelyard-load request --connect unix:@demo --rate 200 --duration-ms 3000
";

const COMMANDS: &str = "trial, serve, web, request, http, resize, spin, park, calibrate";

/// Executes one command line, without the program's name.
///
/// # Errors
///
/// [`LoadError::Usage`] for a wrong request, the others as they arise.
pub fn execute(words: &[String], stdout: &mut dyn Write) -> Result<(), LoadError> {
    let is_help = |word: &String| word == "--help" || word == "-h";
    if words.iter().any(is_help) {
        return print(stdout, USAGE);
    }
    crate::signal::install()?;
    let rest = words.get(1..).unwrap_or_default();
    match words.first().map(String::as_str) {
        Some("trial") => crate::trial::command(rest),
        Some("serve") => serve(rest),
        Some("web") => web(rest),
        Some("request") => request(rest, stdout),
        Some("launches") => launches(rest),
        Some("http") => crate::orders::command(rest),
        Some("resize") => job(JobKind::Resize, rest),
        Some("spin") => job(JobKind::Spin, rest),
        Some("park") => crate::freeze::command(rest),
        Some("park-work") => crate::freeze::work_command(rest),
        Some("calibrate") => calibrate_work(rest, stdout),
        Some(other) => Err(LoadError::usage(format!("`{other}` is not a command; allowed: {COMMANDS}"))),
        None => Err(LoadError::usage(format!("a command is missing; allowed: {COMMANDS}"))),
    }
}

pub(crate) fn print(stdout: &mut dyn Write, text: &str) -> Result<(), LoadError> {
    stdout.write_all(text.as_bytes()).map_err(|error| LoadError::system("writing to standard output", error))
}

/// SOURCE: own choice; limits that no machine of today reaches.
const MOST_THREADS: u32 = 4096;

/// What `serve` and `web` have in common.
struct Serving {
    address: Address,
    threads: u32,
    work_us: Option<u64>,
    iterations: Option<u64>,
    long_factor: f64,
}

impl Serving {
    fn take(given: &mut Given) -> Result<Self, LoadError> {
        let place = given.need("--listen", "where to listen, as in `unix:@demo`")?;
        Ok(Self {
            address: Address::parse("--listen", &place)?,
            threads: given.count("--threads", 1, 1)?.min(MOST_THREADS),
            work_us: given.number("--work-us", 1, 60_000_000)?,
            iterations: given.number("--work-iterations", 1, 1 << 50)?,
            long_factor: given.real("--long-factor", 0.0, 1e6)?.unwrap_or(1.0),
        })
    }

    fn iterations(&self) -> Result<u64, LoadError> {
        match (self.work_us, self.iterations) {
            (None, Some(iterations)) => Ok(iterations),
            (Some(work_us), None) => Ok(calibrate(work_us).iterations),
            _ => Err(LoadError::usage("give one of `--work-us` and `--work-iterations`")),
        }
    }
}

fn serve(words: &[String]) -> Result<(), LoadError> {
    let mut given = Given::read(words, &["--control"])?;
    let serving = Serving::take(&mut given)?;
    let protocol = given.choice("--protocol", &Protocol::ALL)?.unwrap_or(Protocol::Frames);
    let moderation =
        given.take("--moderation").map(|place| Address::parse("--moderation", &place)).transpose()?;
    let is_controlled = given.has_flag("--control");
    given.finish()?;
    if is_controlled {
        wait_for("begin")?;
    }
    let work_iterations = serving.iterations()?;
    let long_iterations = lengthen(work_iterations, serving.long_factor);
    let service =
        Service { protocol, threads: serving.threads, work_iterations, long_iterations, moderation };
    service.serve(&serving.address, |place| say(&format!("ready {place}")))
}

/// SOURCE: own choice; it is ready in milliseconds.
const TIER_LIMIT_MS: u64 = 20_000;

fn web(words: &[String]) -> Result<(), LoadError> {
    let mut given = Given::read(words, &[])?;
    let serving = Serving::take(&mut given)?;
    given.finish()?;
    let work_iterations = serving.iterations()?;
    let mut tier =
        Part::start("moderation", &moderation_words(serving.threads, work_iterations, serving.long_factor))?;
    tier.order("begin")?;
    let moderation = Some(Address::parse("--moderation", &tier.await_line("ready", TIER_LIMIT_MS)?)?);
    let service = Service {
        protocol: Protocol::Http,
        threads: serving.threads,
        work_iterations,
        long_iterations: work_iterations,
        moderation,
    };
    service.serve(&serving.address, |place| say(&format!("ready {place}")))
}

fn request(words: &[String], stdout: &mut dyn Write) -> Result<(), LoadError> {
    let mut given = Given::read(words, &["--control", "--json"])?;
    let place = given.need("--connect", "where the service listens, as in `unix:@demo`")?;
    let rate_per_s = given.real("--rate", 1e-6, 1e7)?;
    let duration_ms = given.number("--duration-ms", 1, 86_400_000)?;
    let (Some(rate_per_s), Some(duration_ms)) = (rate_per_s, duration_ms) else {
        return Err(LoadError::usage("`--rate` [1/s] and `--duration-ms` are needed"));
    };
    #[expect(clippy::cast_precision_loss, reason = "a day in milliseconds fits")]
    let expected = rate_per_s * duration_ms as f64 / 1e3;
    if expected > crate::client::MOST_REQUESTS {
        return Err(LoadError::usage(format!(
            "`--rate` and `--duration-ms` ask for {expected:.0} requests; allowed: {:.0}",
            crate::client::MOST_REQUESTS
        )));
    }
    let client = Client {
        address: Address::parse("--connect", &place)?,
        protocol: given.choice("--protocol", &Protocol::ALL)?.unwrap_or(Protocol::Frames),
        schedule: Schedule {
            arrivals: given.choice("--arrivals", &Arrivals::ALL)?.unwrap_or(Arrivals::Poisson),
            rate_per_s,
            duration_ns: duration_ms * 1_000_000,
            long_share: given.real("--long-share", 0.0, 1.0)?.unwrap_or(0.0),
            seed: given.number("--seed", 0, u64::MAX)?.unwrap_or(1),
        },
        connections: given.count("--connections", 1, 8)?.min(1024),
        closed_loop: given.count("--closed-loop", 0, 0)?.min(1024),
        drain_ns: given.number("--drain-ms", 0, 86_400_000)?.unwrap_or(10_000) * 1_000_000,
        spin_ns: given.number("--spin-us", 0, 10_000)?.unwrap_or(50) * 1000,
        requests_path: given.take("--out").map(Into::into),
    };
    let is_json = given.has_flag("--json");
    let is_controlled = given.has_flag("--control");
    given.finish()?;
    if is_controlled {
        wait_for("begin")?;
    }
    let summary = client.execute(|count| {
        if !is_controlled {
            // Time for the receiver to start.
            return Ok(crate::clock::now_ns() + 20_000_000);
        }
        say(&format!("ready {count}"))?;
        let start = wait_for("go")?;
        start.parse().map_err(|_| LoadError::Failed(format!("`go {start}` names no stamp")))
    })?;
    if is_json || is_controlled {
        return print(stdout, &format!("{summary}\n"));
    }
    print(stdout, &crate::client::table_text(&summary))
}

/// The part of a trial that launches a command; it has no use alone.
fn launches(words: &[String]) -> Result<(), LoadError> {
    let mut given = Given::read(words, &["--control"])?;
    let command = given.need("--command", "the words of the command, as a JSON list")?;
    let command = serde_json::from_str(&command)
        .map_err(|error| LoadError::usage(format!("`--command` is `{command}`: {error}")))?;
    let mut length_ns = |name| given.number(name, 0, 86_400_000).map(|found| found.unwrap_or(0) * 1_000_000);
    let (duration_ns, drain_ns) = (length_ns("--duration-ms")?, length_ns("--drain-ms")?);
    let requests_path = given.need("--out", "the file for the requests")?.into();
    given.has_flag("--control");
    given.finish()?;
    wait_for("begin")?;
    say("ready")?;
    let start = wait_for("go")?;
    let start_ns = start.parse().map_err(|_| LoadError::Failed(format!("`go {start}` names no stamp")))?;
    let done = Launches { command, duration_ns, drain_ns, requests_path }.execute(start_ns);
    let told = match &done {
        Ok(summary) => summary.clone(),
        Err(error) => json!({"error": error.to_string()}),
    };
    say(&told.to_string())?;
    done.map(|_| ())
}

fn calibrate_work(words: &[String], stdout: &mut dyn Write) -> Result<(), LoadError> {
    let mut given = Given::read(words, &["--json"])?;
    let Some(work_us) = given.number("--work-us", 1, 60_000_000)? else {
        return Err(LoadError::usage("`--work-us` is missing: how long a request is to take [us]"));
    };
    let cpus = given.cpus("--cpus")?;
    given.has_flag("--json");
    given.finish()?;
    if let Some(cpus) = cpus {
        let set = crate::settings::set_cpus(nix::unistd::Pid::from_raw(0), &cpus);
        set.map_err(|error| LoadError::system("setting the CPUs", error))?;
    }
    let found = calibrate(work_us);
    let answer = json!({
        "iterations": found.iterations, "work_ns": found.work_ns, "attempts": found.attempts,
    });
    print(stdout, &format!("{answer}\n"))
}

fn job(kind: JobKind, words: &[String]) -> Result<(), LoadError> {
    let mut given = Given::read(words, &["--control"])?;
    let counter = given.number("--counter", 0, 1 << 20)?;
    let job = Job {
        kind,
        number: given.count("--job", 0, 0)?,
        threads: given.count("--threads", 1, 1)?.min(MOST_THREADS),
        seed: given.number("--seed", 0, u64::MAX)?.unwrap_or(1),
        path: given.need("--out", "the file for the stamps of finished iterations")?.into(),
        counter: counter.and_then(|number| i32::try_from(number).ok()),
        duration_ns: given.number("--duration-ms", 0, 86_400_000)?.unwrap_or(0) * 1_000_000,
    };
    let is_controlled = given.has_flag("--control");
    given.finish()?;
    if is_controlled {
        wait_for("begin")?;
    }
    let iterations = job.execute(|| {
        if is_controlled {
            say("ready")?;
            match wait_for("go") {
                // It was starved for the whole of its phase: nothing done is what it has done.
                Ok(_) | Err(LoadError::Interrupted { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    })?;
    say(&json!({"iterations": iterations}).to_string())
}

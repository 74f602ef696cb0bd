use std::io::Write;

use serde_json::json;

use crate::CommError;
use crate::canary::measure_canary;
use crate::clock::{measure_stamps, median};
use crate::launch::launch;
use crate::options::{Given, Options, parse_cpus};
use crate::overhead::MESSAGES;

/// Text of `--help`.
pub const USAGE: &str = "\
Two endpoints send each other messages and stamp every one of them.

Usage:
  steelyard-comm --transport pipe|unix|tcp|shm --plan FILE --out DIR [OPTIONS]
  steelyard-comm --transport tcp --role listen --address HOST:PORT --plan FILE --out DIR [OPTIONS]
  steelyard-comm --transport tcp --role connect --address HOST:PORT --out DIR [OPTIONS]
  steelyard-comm canary --cpus A,B [--json]
  steelyard-comm stamps [--json]
  steelyard-comm overhead [--cpus A,B] [--messages N] [--json]

The first form starts both endpoints on this host, the second and third one each on two hosts.

Options:
  --plan FILE       `op,size` lines below that heading; ops: pingpong, stream, send, recv, isend, test,
                    iprobe, wtime; sizes 0 to 4294967295 bytes
  --out DIR         folder for the trace; made if it is not there, never overwritten
  --cpus A,B        CPU of endpoint 0 and 1; the scheduler decides if it is left out
  --block N         operations between two looks at the state of the host, 1 or more [256]
  --probes N        clock probes at each of these looks, 0 or more [10]
  --budget-ms N     end at the first look after this time
  --gap-us N        pause before each operation [0]
  --canary FILE     file through which both endpoints time a cache line at each look
  --address H:P     tcp: where endpoint 0 listens [127.0.0.1, a free port]

Planted costs, to check whether an analysis finds them; busy waiting of the sender, off by default:
  --plant-switch BYTES:EXTRA_NS   each message of more than BYTES costs EXTRA_NS more
  --plant-noise LAW               one time per operation, at endpoint 0: `lognormal:sigma=S,scale_ns=T`,
                                  `pareto:alpha=A,scale_ns=T` or `weibull:shape=K,scale_ns=T`
  --plant-seed N                  of the noise [1]

`canary` prints the round trip of a cache line between two CPUs [ns], `stamps` what a stamp costs,
`overhead` also the time of N [20000] messages of 1 B to 10 MB through shared memory, from start to end.

Exit codes: 0 done, 1 the system refused, 2 wrong request, 3 the other endpoint was lost, 128 + n ended by
signal n. What was stamped can be read in each case.

Example:
  printf 'op,size\\npingpong,64\\n' > plan.csv
  steelyard-comm --transport shm --plan plan.csv --out trace --cpus 0,1
";

/// Executes one command line, without the program's name.
///
/// # Errors
///
/// [`CommError::Usage`] for a wrong request, the others as they arise.
pub fn execute(words: &[String], stdout: &mut dyn Write) -> Result<(), CommError> {
    let is_help = |word: &String| word == "--help" || word == "-h";
    if words.iter().any(is_help) {
        return print(stdout, USAGE);
    }
    match words.first().map(String::as_str) {
        Some("canary") => canary(&words[1..], stdout),
        Some("overhead") => overhead(&words[1..], stdout),
        Some("stamps") => stamps(&words[1..], stdout),
        _ => launch(&Options::parse(words)?),
    }
}

fn print(stdout: &mut dyn Write, text: &str) -> Result<(), CommError> {
    stdout.write_all(text.as_bytes()).map_err(|error| CommError::system("writing to standard output", error))
}

/// Takes the flag out of the words.
fn take_json(words: &[String]) -> (bool, Vec<String>) {
    let rest: Vec<String> = words.iter().filter(|word| *word != "--json").cloned().collect();
    (rest.len() < words.len(), rest)
}

fn canary(words: &[String], stdout: &mut dyn Write) -> Result<(), CommError> {
    /// Medians of 1100 round trips each.
    const REPETITIONS: usize = 101;
    let (is_json, words) = take_json(words);
    let mut given = Given::read(&words)?;
    let Some(text) = given.take("--cpus") else {
        return Err(CommError::usage("`--cpus A,B` is missing: the two CPUs, as in `0,1`"));
    };
    given.finish()?;
    let cpus = parse_cpus(&text)?;
    if cpus[0] == cpus[1] {
        return Err(CommError::usage(format!("`--cpus` is `{text}`; allowed: two different CPUs")));
    }
    crate::signal::install()?;
    let mut times = measure_canary(cpus, REPETITIONS)?;
    if times.is_empty() {
        let source = std::io::Error::from(std::io::ErrorKind::TimedOut);
        return Err(CommError::system(format!("a cache line between the CPUs {text}"), source));
    }
    let round_trip_ns = median(&mut times);
    if is_json {
        let (fastest, slowest) = (times[0], times[times.len() - 1]);
        let answer = json!({
            "cpus": cpus, "round_trip_ns": round_trip_ns, "fastest_ns": fastest, "slowest_ns": slowest,
            "batches": times.len(),
        });
        return print(stdout, &format!("{answer}\n"));
    }
    print(stdout, &format!("{round_trip_ns:.1}\n"))
}

fn stamps(words: &[String], stdout: &mut dyn Write) -> Result<(), CommError> {
    let (is_json, words) = take_json(words);
    Given::read(&words)?.finish()?;
    let found = measure_stamps();
    if is_json {
        let answer = json!({"stamp_cost_ns": found.cost_ns, "stamp_resolution_ns": found.resolution_ns});
        return print(stdout, &format!("{answer}\n"));
    }
    print(stdout, &format!("{:.1} ns each, in steps of {} ns\n", found.cost_ns, found.resolution_ns))
}

fn overhead(words: &[String], stdout: &mut dyn Write) -> Result<(), CommError> {
    let (is_json, words) = take_json(words);
    let mut given = Given::read(&words)?;
    let cpus = given.take("--cpus");
    let messages = given.number("--messages", 1, 1_000_000)?.unwrap_or(MESSAGES);
    given.finish()?;
    let found = crate::overhead::measure(cpus.as_deref(), messages)?;
    if is_json {
        return print(stdout, &format!("{found}\n"));
    }
    let [cost, step, count, bytes, elapsed] =
        ["stamp_cost_ns", "stamp_resolution_ns", "messages", "bytes", "elapsed_s"].map(|name| &found[name]);
    print(
        stdout,
        &format!(
            "stamp: {cost} ns, in steps of {step} ns\n{count} messages, {bytes} bytes, shared memory: {elapsed} s\n"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(text: &str) -> Result<String, CommError> {
        let words: Vec<String> = text.split_ascii_whitespace().map(str::to_owned).collect();
        let mut stdout = Vec::new();
        execute(&words, &mut stdout)?;
        Ok(String::from_utf8(stdout).unwrap())
    }

    #[test]
    fn help_names_every_transport_and_operation() {
        let text = output("--help").unwrap();
        for (_, name) in crate::Transport::ALL {
            assert!(text.contains(name));
        }
        for (_, name) in crate::Operation::ALL {
            assert!(text.contains(name));
        }
    }

    #[test]
    fn stamps_are_told_in_both_forms() {
        assert!(output("stamps").unwrap().contains(" ns each"));
        let answer: serde_json::Value = serde_json::from_str(&output("stamps --json").unwrap()).unwrap();
        assert!(answer["stamp_cost_ns"].as_f64().unwrap() > 0.0);
    }

    #[test]
    fn a_canary_needs_two_cpus() {
        let problem = |text: &str| output(text).unwrap_err().to_string();
        assert!(problem("canary").contains("`--cpus A,B` is missing"));
        assert!(problem("canary --cpus 0,0").contains("two different CPUs"));
        assert!(problem("canary --cpus 0,100000").contains("names CPU 100000; allowed"));
        assert!(problem("canary --cpus 0,1 --plan x").contains("`--plan` is not an option here"));
    }
}

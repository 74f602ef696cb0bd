//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use crate::SchedulerError;

/// Where a running scheduler keeps its process number and status, unless told otherwise.
pub const STATE_FOLDER: &str = "/run/steelyard-scheduler";

/// What `--help` prints.
pub const HELP: &str = "\
steelyard-scheduler start [OPTIONS]   attach the best-effort class
steelyard-scheduler stop              detach it
steelyard-scheduler status            say whether it is attached, and what it has counted
steelyard-scheduler probe             say whether this machine can have it
steelyard-scheduler costs             say how long each program of the class took
steelyard-scheduler watch             measure strictness under whatever policy is active
steelyard-scheduler thaw              thaw the groups that a killed scheduler left frozen

start:
  --foreground            stay, print `ready` when attached, end on SIGTERM or SIGINT
  --no-local              without the local check (for ablation)
  --no-entry              without the entry check
  --no-exit               without the exit check
  --heartbeat-ms N        age at which a starved task gets a moment, 100 to 20000 (20000)
  --lc-slice-ms N         how long an LC task that woke goes before those of its group that woke later,
                          1 to 1000 (12)
  --be-slice-ms N         the same among BE tasks, 1 to 1000 (20)
  --siblings POLICY       BE tasks on a hardware thread of a core that runs an LC task, too: `allow`, `avoid` (not
                          where another core is idle) or `forbid` (allow)
  --freeze-after-s N      freeze control groups starved for longer, 0: never (60)
  --best-effort-below DIR mark the groups directly below this one with cpu.idle, as they appear
  --counters FILE         write the counters there every second and at the end
  --within-s N            give up if it is not attached by then, 1 to 600 (10)
  --starter PID           end with process PID, which started this one, until the class is attached
watch:
  --counters FILE         write the counters there every second and at the end
status, probe, costs:
  --json                  for programs
  --prometheus            status only: for a Prometheus collector
all:
  --state DIR             where the running scheduler keeps its status (/run/steelyard-scheduler)
  --verbose               show what the kernel's verifier and the loader say
";

/// What the program is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Attach the class.
    Start(StartOptions),
    /// Detach the one that was started.
    Stop,
    /// Say what the started one says of itself.
    Status(Form),
    /// Say whether this machine can have the class.
    Probe(Form),
    /// Say what the programs of the class took, as the kernel measured.
    Costs(Form),
    /// Measure strictness under the active policy.
    Watch,
    /// Thaw what a killed scheduler left frozen; with `when_closed` after standard input ends.
    Thaw {
        /// Wait for the end of standard input.
        when_closed: bool,
    },
    /// Print the help.
    Help,
}

/// How an answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// For people.
    Text,
    /// For programs.
    Json,
    /// Prometheus text exposition.
    Prometheus,
}

/// The three checks, each of which can be left out to see what it buys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Switches {
    /// The next pick on a CPU is never BE if an LC task is runnable there.
    pub local: bool,
    /// A waking LC task interrupts BE on another CPU.
    pub entry: bool,
    /// Before running BE, a CPU looks for LC tasks that wait elsewhere.
    pub exit: bool,
}

/// What BE tasks may do on a hardware thread of a core on which an LC task runs, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Siblings {
    /// Run, as anywhere else.
    Allow,
    /// Run, unless another core is idle.
    Avoid,
    /// Not run: the thread idles.
    Forbid,
}

impl Siblings {
    /// All of them, in the order of `enum siblings_policy` in `siblings.bpf.h`.
    pub const ALL: [Self; 3] = [Self::Allow, Self::Avoid, Self::Forbid];

    /// Its name on the command line and in what is written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Avoid => "avoid",
            Self::Forbid => "forbid",
        }
    }
}

/// How the class is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartOptions {
    /// Stay in the foreground.
    pub is_foreground: bool,
    /// The checks that are on.
    pub switches: Switches,
    /// Age at which a starved task gets a moment.
    pub heartbeat: Duration,
    /// How long an LC task that woke goes before those of its group that woke later.
    pub lc_slice: Duration,
    /// How long a BE task runs while other BE tasks wait.
    pub be_slice: Duration,
    /// What BE tasks may do beside an LC task on one core.
    pub siblings: Siblings,
    /// Starvation after which a control group is frozen; `None`: never.
    pub freeze_after: Option<Duration>,
    /// Control group whose direct subgroups are marked best-effort.
    pub best_effort_below: Option<PathBuf>,
    /// How long it may take until the class is attached, where it does not stay in the foreground.
    pub within: Duration,
    /// Process with which this one ends until the class is attached.
    pub starter: Option<u32>,
}

/// The whole command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// What to do.
    pub command: Command,
    /// Where the counters go.
    pub counters: Option<PathBuf>,
    /// Where the running scheduler keeps its status.
    pub state: PathBuf,
    /// Show what the verifier and the loader say.
    pub is_verbose: bool,
}

impl Options {
    /// Read the words of the command line.
    ///
    /// # Errors
    ///
    /// [`SchedulerError::Usage`] for an unknown word or a value out of its range.
    ///
    /// # Examples
    ///
    /// ```
    /// use steelyard_scheduler::options::{Command, Options};
    /// let words = ["start", "--no-exit", "--heartbeat-ms", "5000"].map(String::from);
    /// let Command::Start(start) = Options::parse(&words)?.command else { panic!() };
    /// assert!(!start.switches.exit && start.switches.entry);
    /// # Ok::<(), steelyard_scheduler::SchedulerError>(())
    /// ```
    pub fn parse(words: &[String]) -> Result<Self, SchedulerError> {
        let (verb, rest) =
            words.split_first().map_or(("--help", &[][..]), |(verb, rest)| (verb.as_str(), rest));
        let mut parsed = Parsed::new(rest);
        let command = match verb {
            "start" => Command::Start(parsed.start()?),
            "stop" => Command::Stop,
            "status" => Command::Status(parsed.form(true)),
            "probe" => Command::Probe(parsed.form(false)),
            "costs" => Command::Costs(parsed.form(false)),
            "watch" => Command::Watch,
            "thaw" => Command::Thaw { when_closed: parsed.flag("--when-closed") },
            "--help" | "-h" | "help" => Command::Help,
            other => {
                let known = "start, stop, status, probe, costs, watch, thaw";
                return Err(SchedulerError::usage(format!("no command `{other}`; allowed: {known}")));
            }
        };
        let counters = parsed.value("--counters")?.map(PathBuf::from);
        let state = parsed.value("--state")?.map_or_else(|| PathBuf::from(STATE_FOLDER), PathBuf::from);
        let is_verbose = parsed.flag("--verbose");
        parsed.finish(verb)?;
        Ok(Self { command, counters, state, is_verbose })
    }
}

struct Parsed {
    words: Vec<String>,
}

impl Parsed {
    /// `--name=value` counts as two words.
    fn new(words: &[String]) -> Self {
        let split = |word: &String| match word.split_once('=') {
            Some((name, value)) if name.starts_with("--") => vec![name.to_owned(), value.to_owned()],
            _ => vec![word.clone()],
        };
        Self { words: words.iter().flat_map(split).collect() }
    }

    fn flag(&mut self, name: &str) -> bool {
        let before = self.words.len();
        self.words.retain(|word| word != name);
        self.words.len() != before
    }

    /// The last one counts.
    fn value(&mut self, name: &str) -> Result<Option<String>, SchedulerError> {
        let mut value = None;
        while let Some(place) = self.words.iter().position(|word| word == name) {
            if place + 1 >= self.words.len() {
                return Err(SchedulerError::usage(format!("`{name}` needs a value")));
            }
            value = Some(self.words.remove(place + 1));
            self.words.remove(place);
        }
        Ok(value)
    }

    fn process(&mut self, name: &str) -> Result<Option<u32>, SchedulerError> {
        let Some(text) = self.value(name)? else { return Ok(None) };
        let problem = |_| SchedulerError::usage(format!("`{name} {text}`: allowed is the id of a process"));
        text.parse().map(Some).map_err(problem)
    }

    fn number(
        &mut self,
        name: &str,
        range: std::ops::RangeInclusive<u64>,
        usual: u64,
    ) -> Result<u64, SchedulerError> {
        let Some(text) = self.value(name)? else { return Ok(usual) };
        text.parse().ok().filter(|number| range.contains(number)).ok_or_else(|| {
            let (low, high) = (range.start(), range.end());
            SchedulerError::usage(format!("`{name} {text}`: allowed are whole numbers from {low} to {high}"))
        })
    }

    fn start(&mut self) -> Result<StartOptions, SchedulerError> {
        let heartbeat_ms = self.number("--heartbeat-ms", 100..=20_000, 20_000)?;
        let freeze_after_s = self.number("--freeze-after-s", 0..=86_400, 60)?;
        let lc_slice_ms = self.number("--lc-slice-ms", 1..=1000, 12)?;
        let be_slice_ms = self.number("--be-slice-ms", 1..=1000, 20)?;
        let within_s = self.number("--within-s", 1..=600, 10)?;
        Ok(StartOptions {
            is_foreground: self.flag("--foreground"),
            switches: Switches {
                local: !self.flag("--no-local"),
                entry: !self.flag("--no-entry"),
                exit: !self.flag("--no-exit"),
            },
            lc_slice: Duration::from_millis(lc_slice_ms),
            be_slice: Duration::from_millis(be_slice_ms),
            siblings: self.siblings()?,
            heartbeat: Duration::from_millis(heartbeat_ms),
            freeze_after: (freeze_after_s > 0).then(|| Duration::from_secs(freeze_after_s)),
            best_effort_below: self.value("--best-effort-below")?.map(PathBuf::from),
            within: Duration::from_secs(within_s),
            starter: self.process("--starter")?,
        })
    }

    fn siblings(&mut self) -> Result<Siblings, SchedulerError> {
        let Some(text) = self.value("--siblings")? else { return Ok(Siblings::Allow) };
        let found = Siblings::ALL.into_iter().find(|policy| policy.name() == text);
        let allowed = Siblings::ALL.map(Siblings::name).join(", ");
        found.ok_or_else(|| SchedulerError::usage(format!("`--siblings {text}`: allowed are {allowed}")))
    }

    fn form(&mut self, has_prometheus: bool) -> Form {
        if self.flag("--json") {
            Form::Json
        } else if has_prometheus && self.flag("--prometheus") {
            Form::Prometheus
        } else {
            Form::Text
        }
    }

    fn finish(self, verb: &str) -> Result<(), SchedulerError> {
        match self.words.first() {
            None => Ok(()),
            Some(word) => Err(SchedulerError::usage(format!("`{verb}` knows no `{word}`"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, SchedulerError> {
        Options::parse(&line.split_whitespace().map(String::from).collect::<Vec<_>>())
    }

    fn start(line: &str) -> StartOptions {
        match parse(line).unwrap().command {
            Command::Start(start) => start,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn all_checks_are_on_unless_one_is_left_out() {
        assert_eq!(start("start").switches, Switches { local: true, entry: true, exit: true });
        let switches = start("start --no-local --no-exit").switches;
        assert_eq!(switches, Switches { local: false, entry: true, exit: false });
    }

    #[test]
    fn a_value_may_follow_an_equals_sign() {
        let options = parse("start --foreground --counters=/tmp/a --heartbeat-ms=500").unwrap();
        assert_eq!(options.counters, Some(PathBuf::from("/tmp/a")));
        assert_eq!(start("start --heartbeat-ms=500").heartbeat, Duration::from_millis(500));
    }

    #[test]
    fn of_an_option_that_is_given_twice_the_last_counts() {
        assert_eq!(start("start --starter 7 --foreground --starter 8").starter, Some(8));
        assert_eq!(start("start --within-s 30 --within-s 5").within, Duration::from_secs(5));
        assert_eq!((start("start").starter, start("start").within), (None, Duration::from_secs(10)));
    }

    #[test]
    fn siblings_are_used_unless_that_is_not_allowed() {
        assert_eq!(start("start").siblings, Siblings::Allow);
        for policy in Siblings::ALL {
            assert_eq!(start(&format!("start --siblings={}", policy.name())).siblings, policy);
        }
        let policies = include_str!("bpf/siblings.bpf.h");
        let (_, list) = policies.split_once("enum siblings_policy {").unwrap();
        let names = Siblings::ALL.map(|policy| format!("SIBLINGS_{}", policy.name().to_uppercase()));
        let places = names.map(|name| list.find(&name).unwrap());
        assert!(places.is_sorted());
    }

    #[test]
    fn zero_seconds_mean_that_nothing_is_frozen() {
        assert_eq!(start("start --freeze-after-s 0").freeze_after, None);
        assert_eq!(start("start").freeze_after, Some(Duration::from_secs(60)));
    }

    #[test]
    fn errors_name_the_word_and_what_is_allowed() {
        for (line, expected) in [
            ("begin", "no command `begin`; allowed: start, stop, status, probe, costs, watch, thaw"),
            (
                "start --heartbeat-ms 30000",
                "`--heartbeat-ms 30000`: allowed are whole numbers from 100 to 20000",
            ),
            ("start --heartbeat-ms", "`--heartbeat-ms` needs a value"),
            ("start --starter me", "`--starter me`: allowed is the id of a process"),
            ("start --siblings no", "`--siblings no`: allowed are allow, avoid, forbid"),
            ("stop --json", "`stop` knows no `--json`"),
            ("probe --prometheus", "`probe` knows no `--prometheus`"),
        ] {
            let error = parse(line).unwrap_err();
            assert_eq!(error.to_string(), expected);
            assert_eq!(error.exit_code(), 2);
        }
    }

    #[test]
    fn without_words_there_is_help() {
        assert_eq!(parse("").unwrap().command, Command::Help);
        for option in ["--no-entry", "--freeze-after-s", "--counters", "--lc-slice-ms", "--siblings"] {
            assert!(HELP.contains(option));
        }
    }
}

use std::ops::RangeInclusive;
use std::slice;

use crate::{Distribution, End, Load, LockKind, SyncError};

/// Packets of one correctness run at most; beyond it a typing mistake is likelier than a wish.
const LONGEST: RangeInclusive<u64> = 1..=86_400_000;
/// A source's seed byte must be unique.
const SOURCES: RangeInclusive<u64> = 1..=255;
/// The longest exponential packet, 22 means of a source with 22 times the mean, fits 32 bits.
const MEANS: RangeInclusive<u64> = 1..=1_000_000;
/// The streams are advanced one draw at a time.
const TRIALS: RangeInclusive<u64> = 0..=1_000_000;

/// A queue of 8 bytes a packet then takes 8 MiB.
pub(crate) const DEPTHS: RangeInclusive<u64> = 1..=1 << 20;
const WORKERS: RangeInclusive<u64> = 1..=1024;

/// The words of a command line behind its command, taken one after the other.
#[derive(Debug)]
pub(crate) struct Arguments<'a> {
    words: slice::Iter<'a, String>,
}

impl<'a> Arguments<'a> {
    pub(crate) fn new(words: &'a [String]) -> Self {
        Self { words: words.iter() }
    }

    /// The next word; `name` is what the usage text calls it.
    pub(crate) fn word(&mut self, name: &str) -> Result<&'a str, SyncError> {
        self.words
            .next()
            .filter(|word| !word.starts_with("--"))
            .map(String::as_str)
            .ok_or_else(|| SyncError::usage(format!("argument {name} is missing")))
    }

    /// A whole number.
    pub(crate) fn number(&mut self, name: &str, allowed: &RangeInclusive<u64>) -> Result<u64, SyncError> {
        let text = self.word(name)?;
        match text.parse::<u64>() {
            Ok(number) if allowed.contains(&number) => Ok(number),
            _ => {
                let (low, high) = (allowed.start(), allowed.end());
                Err(SyncError::usage(format!(
                    "{name} is `{text}`; allowed: a whole number from {low} to {high}"
                )))
            }
        }
    }

    /// A whole number whose range fits 32 bits.
    pub(crate) fn small(&mut self, name: &str, allowed: &RangeInclusive<u64>) -> Result<u32, SyncError> {
        Ok(u32::try_from(self.number(name, allowed)?).unwrap_or(u32::MAX))
    }

    /// One of the letters of a choice; `choices` are letter, value, meaning.
    pub(crate) fn choice<T: Copy>(
        &mut self,
        name: &str,
        choices: &[(char, T, &str)],
    ) -> Result<T, SyncError> {
        let text = self.word(name)?;
        let mut letters = text.chars();
        if let (Some(letter), None) = (letters.next(), letters.next())
            && let Some((_, value, _)) = choices.iter().find(|(known, ..)| *known == letter)
        {
            return Ok(*value);
        }
        let known: Vec<String> =
            choices.iter().map(|(letter, _, meaning)| format!("`{letter}` {meaning}")).collect();
        Err(SyncError::usage(format!("{name} is `{text}`; allowed: {}", known.join(", "))))
    }

    /// `M n W U s`, the arguments that both programs begin with. The end is a time until
    /// [`Arguments::end`] finds the word `correct`.
    pub(crate) fn load(&mut self) -> Result<Load, SyncError> {
        let length = self.number("M", &LONGEST)?;
        Ok(Load {
            sources: self.sources()?,
            mean: self.mean()?,
            distribution: self.choice(
                "U",
                &[('t', Distribution::Uniform, "uniform"), ('f', Distribution::Exponential, "exponential")],
            )?,
            trial: self.trial()?,
            end: End::After(length),
        })
    }

    pub(crate) fn sources(&mut self) -> Result<u32, SyncError> {
        self.small("n", &SOURCES)
    }

    pub(crate) fn mean(&mut self) -> Result<u32, SyncError> {
        self.small("W", &MEANS)
    }

    pub(crate) fn trial(&mut self) -> Result<u64, SyncError> {
        self.number("s", &TRIALS)
    }

    /// The word `correct`, if it follows: then M is a number of packets from each source.
    pub(crate) fn end(&mut self, load: Load) -> Load {
        match (load.end, self.words.as_slice()) {
            (End::After(count), [word, ..]) if word == "correct" => {
                self.words.next();
                Load { end: End::Packets(count), ..load }
            }
            _ => load,
        }
    }

    /// The letter of a lock, or `n`.
    pub(crate) fn lock(&mut self) -> Result<Option<LockKind>, SyncError> {
        let mut choices = vec![('n', None, "none")];
        choices.extend(LockKind::ALL.map(|(letter, kind, name)| (letter, Some(kind), name)));
        self.choice("L", &choices)
    }

    /// The letter of a lock.
    pub(crate) fn lock_only(&mut self) -> Result<LockKind, SyncError> {
        self.choice("L", &LockKind::ALL)
    }

    /// What is left: options, or nothing.
    pub(crate) fn rest(self) -> &'a [String] {
        self.words.as_slice()
    }

    /// Refuses further words.
    pub(crate) fn finish(self) -> Result<(), SyncError> {
        match self.rest() {
            [] => Ok(()),
            [word, ..] => Err(SyncError::usage(format!("`{word}` is one argument too many"))),
        }
    }
}

/// The options of `parallel`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct PipelineOptions {
    pub(crate) workers: Option<usize>,
    pub(crate) cpus: Vec<usize>,
}

impl PipelineOptions {
    pub(crate) fn read(words: &[String]) -> Result<Self, SyncError> {
        let mut options = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let (name, attached) = match word.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (word.as_str(), None),
            };
            if name != "--workers" && name != "--pin" {
                return Err(SyncError::usage(format!(
                    "`{word}` is not an argument of `parallel`; allowed here: `correct`, `--workers K`, `--pin LIST`"
                )));
            }
            let value = attached
                .or_else(|| words.next().map(String::as_str))
                .ok_or_else(|| SyncError::usage(format!("`{name}` needs a value")))?;
            let is_new = if name == "--pin" { options.cpus.is_empty() } else { options.workers.is_none() };
            if !is_new {
                return Err(SyncError::usage(format!("`{name}` is given twice")));
            }
            if name == "--pin" {
                options.cpus = cpu_list(value)?;
            } else {
                options.workers = Some(worker_count(value)?);
            }
        }
        Ok(options)
    }
}

fn worker_count(text: &str) -> Result<usize, SyncError> {
    match text.parse::<u64>() {
        Ok(count) if WORKERS.contains(&count) => Ok(usize::try_from(count).unwrap_or(usize::MAX)),
        _ => {
            let (low, high) = (WORKERS.start(), WORKERS.end());
            Err(SyncError::usage(format!(
                "`--workers` is `{text}`; allowed: a whole number from {low} to {high}"
            )))
        }
    }
}

/// CPUs of a list as in `0,2-3`.
fn cpu_list(text: &str) -> Result<Vec<usize>, SyncError> {
    let wrong = || SyncError::usage(format!("`--pin` is `{text}`; allowed: CPU numbers as in `0,2-3`"));
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let first: usize = first.parse().map_err(|_| wrong())?;
        let last: usize = last.parse().map_err(|_| wrong())?;
        // SOURCE: more CPUs than any Linux has (CONFIG_NR_CPUS is at most 8192).
        if first > last || last > 8192 {
            return Err(wrong());
        }
        cpus.extend(first..=last);
    }
    Ok(cpus)
}

use std::path::PathBuf;

use crate::WatchError;

/// Text of `--help`.
pub const USAGE: &str = "\
Watches threads and the host while a program is executed, until SIGTERM.

Usage:
  steelyard-watch --out DIR --names PREFIX[,PREFIX...] [--sample-ms N] [--limit-mib N] [--with-parent]

Leaves in DIR: switches.bin (when the threads whose names begin so did not hold their CPU, and who came next),
migrations.bin (when they changed CPU), samples.bin (state of the host every N ms, usual: 10), and at the end
watch.json (what was recorded, lost and missing, and the CPU time that the watching itself took). Prints
`ready` when everything after that moment is recorded. Files together grow to at most --limit-mib (usual:
1024); what came after is counted. --with-parent: ends with the process that started it.

Watching switches needs the right to watch whole CPUs (CAP_PERFMON, or kernel.perf_event_paranoid <= 0);
without it only the samples are taken, and watch.json says why.

Exit codes: 0 done, 1 the system refused, 2 wrong request.

Example:
  steelyard-watch --out /tmp/watched --names my-service &
";

/// What is to be watched, and where the files go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Folder of the files.
    pub out: PathBuf,
    /// A thread is watched when its name, as the kernel knows it, begins with one of these.
    pub names: Vec<String>,
    /// Time between two samples of the host [ms].
    pub sample_ms: u64,
    /// Limit of the size of all files together [MiB].
    pub limit_mib: u64,
    /// Whether to end with the parent.
    pub is_with_parent: bool,
}

/// The kernel keeps 15 characters of a thread's name (`TASK_COMM_LEN` is 16).
const NAME_BYTES: usize = 15;

impl Options {
    /// Reads a command line.
    ///
    /// # Errors
    ///
    /// [`WatchError::Usage`] for an option that is unknown, missing or out of range.
    ///
    /// # Examples
    ///
    /// ```
    /// let words = ["--out", "/tmp/w", "--names", "java,steelyard-calls"].map(str::to_owned);
    /// let options = steelyard_watch::Options::parse(&words)?;
    /// // The kernel keeps 15 characters of a name.
    /// assert_eq!(options.names, ["java", "steelyard-calls"]);
    /// assert_eq!(options.sample_ms, 10);
    /// # Ok::<(), steelyard_watch::WatchError>(())
    /// ```
    pub fn parse(words: &[String]) -> Result<Self, WatchError> {
        let mut out = None;
        let mut names = Vec::new();
        let (mut sample_ms, mut limit_mib, mut is_with_parent) = (10, 1024, false);
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value =
                || words.next().ok_or_else(|| WatchError::Usage(format!("`{word}` needs a value")));
            match word.as_str() {
                "--out" => out = Some(PathBuf::from(value()?)),
                "--names" => names = prefixes(value()?)?,
                "--sample-ms" => sample_ms = number(word, value()?, 1, 60_000)?,
                "--limit-mib" => limit_mib = number(word, value()?, 1, 1 << 20)?,
                "--with-parent" => is_with_parent = true,
                other => return Err(WatchError::Usage(format!("`{other}` is not an option"))),
            }
        }
        let missing =
            |name: &str, meaning: &str| WatchError::Usage(format!("`{name}` is missing: {meaning}"));
        let out = out.ok_or_else(|| missing("--out", "the folder for the files"))?;
        if names.is_empty() {
            return Err(missing("--names", "beginnings of the names of the threads to watch"));
        }
        Ok(Self { out, names, sample_ms, limit_mib, is_with_parent })
    }
}

fn prefixes(text: &str) -> Result<Vec<String>, WatchError> {
    let names: Vec<String> = text.split(',').map(cut).collect();
    if names.iter().any(String::is_empty) {
        return Err(WatchError::Usage(format!(
            "`--names` is `{text}`; allowed: PREFIX[,PREFIX...], none empty"
        )));
    }
    Ok(names)
}

/// What the kernel keeps of a name.
fn cut(name: &str) -> String {
    let mut end = name.len().min(NAME_BYTES);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name[..end].to_owned()
}

fn number(name: &str, text: &str, low: u64, high: u64) -> Result<u64, WatchError> {
    match text.parse() {
        Ok(number) if (low..=high).contains(&number) => Ok(number),
        _ => Err(WatchError::Usage(format!(
            "`{name}` is `{text}`; allowed: whole numbers from {low} to {high}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Options, WatchError> {
        Options::parse(&text.split_ascii_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn what_is_wrong_is_named_with_what_is_allowed() {
        for (text, said) in [
            ("--names a", "`--out` is missing"),
            ("--out d", "`--names` is missing"),
            ("--out d --names a,", "none empty"),
            ("--out d --names a --sample-ms 0", "whole numbers from 1 to 60000"),
            ("--out d --names", "needs a value"),
            ("--out d --names a --hurry", "`--hurry` is not an option"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.to_string().contains(said), "{error}");
            assert_eq!(error.exit_code(), 2);
        }
    }

    #[test]
    fn a_name_is_cut_as_the_kernel_cuts_it() {
        let options = parse("--out d --names steelyard-calls-of-loop,ääääääääää").unwrap();
        assert_eq!(options.names, ["steelyard-calls", "äääääää"]);
    }
}

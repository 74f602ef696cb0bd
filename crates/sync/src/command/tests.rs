use super::*;

fn answer(line: &str) -> Result<String, SyncError> {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let mut stdout = Vec::new();
    execute(&words, &mut stdout)?;
    Ok(String::from_utf8(stdout).unwrap())
}

#[test]
fn one_number_is_printed() {
    assert_eq!(answer("serial 20 1 25 t 1 correct").unwrap(), "652301628025\n");
    assert!(answer("serial 5 3 100 f 2").unwrap().trim().parse::<u64>().unwrap() > 0);
    assert_eq!(answer("parallel 20 1 25 t 1 8 n L correct").unwrap(), "652301628025\n");
    // SAFETY: the call changes nothing. A test may have been given any of the CPUs.
    let cpu = unsafe { libc::sched_getcpu() };
    let pinned = format!("parallel 20 1 25 t 1 8 m A correct --workers 3 --pin={cpu}");
    assert_eq!(answer(&pinned).unwrap(), "652301628025\n");
    assert!(answer("parallel 20 2 25 t 1 8 n W --workers 1").unwrap().trim().parse::<u64>().unwrap() > 0);
    assert_eq!(answer("fingerprint 1000 99999999").unwrap(), "6184153594\n");
    assert_eq!(answer("source-means 1000 2 1").unwrap(), "813\n1186\n");
    assert!(answer("rate 100").unwrap().trim().parse::<u64>().unwrap() > 1000);
}

/// Values of lines `name value`.
fn value(text: &str, name: &str) -> f64 {
    text.lines().find_map(|line| line.strip_prefix(&format!("{name} "))).unwrap().parse().unwrap()
}

#[test]
fn contests_print_rates_and_turns() {
    let text = answer("counter k 2 100").unwrap();
    let turns: f64 = value(&text, "thread 0") + value(&text, "thread 1");
    assert!(turns > 0.0 && value(&text, "slowdown") > 0.0, "{text}");
    // Two threads: 1 if one of them never had its turn.
    assert!((0.0..=1.0).contains(&value(&text, "unfairness")), "{text}");
    for (slowdown, reference) in
        [("slowdown", "one_thread_rate_per_s"), ("slowdown_over_serial", "serial_rate_per_s")]
    {
        let ratio = value(&text, reference) / value(&text, "rate_per_s");
        assert!((value(&text, slowdown) / ratio - 1.0).abs() < 0.01, "{slowdown}: {text}");
    }
    assert!(value(&answer("independent 1000 2 30").unwrap(), "rate_per_s") > 1000.0);
    let text = answer("sleeper m 3 30").unwrap();
    assert!(value(&text, "rate_per_s") <= value(&text, "ideal_rate_per_s"), "{text}");
    assert!(answer("uncontended t 1000").unwrap().trim().parse::<f64>().unwrap() > 0.0);
}

/// What one thread loses to its lock is no slowdown by others.
#[test]
fn one_thread_has_no_slowdown_by_others() {
    let text = answer("counter k 1 20").unwrap();
    assert!((value(&text, "slowdown") - 1.0).abs() < 1e-9, "{text}");
}

#[test]
fn help_is_no_error_and_shows_an_example() {
    assert!(answer("--help").unwrap().contains("Example:"));
    assert!(answer("--version").unwrap().starts_with("steelyard-packets "));
}

#[test]
fn wrong_usage_names_the_argument_and_exits_with_2() {
    for (line, part) in [
        ("", "no command"),
        ("serail", "`serail` is not a command; known: `serial`"),
        ("serial", "argument M is missing"),
        ("serial 10 1 25 t", "argument s is missing"),
        ("serial 0 1 25 t 1", "M is `0`; allowed: a whole number from 1 to"),
        ("serial 10 256 25 t 1", "n is `256`; allowed: a whole number from 1 to 255"),
        ("serial 10 1 25.5 t 1", "W is `25.5`; allowed"),
        ("serial 10 1 25 u 1", "U is `u`; allowed: `t` uniform, `f` exponential"),
        ("serial 10 1 25 tt 1", "U is `tt`; allowed"),
        ("serial 10 1 25 t -1", "s is `-1`; allowed"),
        ("serial 10 1 25 t 1 correct twice", "`twice` is one argument too many"),
        ("serial 10 1 25 t 1 corect", "`corect` is one argument too many"),
        ("parallel 10 1 25 t 1", "argument D is missing"),
        ("parallel 10 1 25 t 1 0 n L", "D is `0`; allowed"),
        ("parallel 10 1 25 t 1 8 x L", "L is `x`; allowed: `n` none, `t` TAS"),
        ("parallel 10 1 25 t 1 8 n Z", "S is `Z`; allowed: `L` LockFree, `H` HomeQueue"),
        ("parallel 10 1 25 t 1 8 n A", "L is `n`; allowed for S = `A`: `t` TAS"),
        (
            "parallel 10 2 25 t 1 8 n L --workers 3",
            "`--workers` is `3`; allowed for S = `L` without a lock: 2",
        ),
        ("parallel 10 2 25 t 1 8 n B --workers 1", "`--workers` is `1`; allowed for S = `B`"),
        (
            "parallel 10 2 25 t 1 8 n W --workers 0",
            "`--workers` is `0`; allowed: a whole number from 1 to 1024",
        ),
        ("parallel 10 2 25 t 1 8 n W --workers", "`--workers` needs a value"),
        ("parallel 10 2 25 t 1 8 n W --workers 1 --workers=2", "`--workers` is given twice"),
        ("parallel 10 2 25 t 1 8 n W --pin 3-1", "`--pin` is `3-1`; allowed: CPU numbers"),
        ("parallel 10 2 25 t 1 8 n W --pin 8000", "`--pin` names CPU 8000; allowed: CPUs of this process"),
        ("parallel 10 2 25 t 1 8 n W corect", "`corect` is not an argument of `parallel`"),
        ("fingerprint 1", "argument SEED is missing"),
        ("fingerprint 4294967296 1", "ITERATIONS is `4294967296`"),
        ("rate 0", "W is `0`"),
        ("independent 0 1 10", "W is `0`"),
        ("independent 1000 0 10", "THREADS is `0`; allowed"),
        ("counter n 1 10", "L is `n`; allowed: `t` TAS"),
        ("counter t 0 10", "THREADS is `0`; allowed"),
        ("sleeper t 1", "argument MS is missing"),
        ("uncontended t 1 1", "`1` is one argument too many"),
    ] {
        let error = answer(line).unwrap_err();
        assert_eq!(error.exit_code(), 2, "{line}");
        assert!(error.to_string().contains(part), "`{line}` says `{error}`");
        assert!(error.hint().is_some());
    }
}

use super::*;

fn answer(line: &str) -> Result<String, WorkError> {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let mut stdout = Vec::new();
    execute(&words, &mut stdout)?;
    Ok(String::from_utf8(stdout).unwrap())
}

#[test]
fn a_kernel_prints_its_checksum_first() {
    let text = answer("kernel qsort --size 1000 --seed 5 --metrics-stdout").unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3);
    assert!(lines[0].len() == 16 && lines[0].bytes().all(|digit| digit.is_ascii_hexdigit()));
    assert!(lines[1].starts_with("#steelyard cpu ") && lines[2].starts_with("#steelyard wall "));
    assert!(answer("kernel qsort --size 1000 --seed 5 --repeat 3 --warmup 2").unwrap().starts_with(lines[0]));
}

#[test]
fn calibrate_prints_what_kernel_takes() {
    let text = answer("calibrate bsearch --target-ms 2").unwrap();
    let names: Vec<&str> = text.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(names, ["size", "operations", "iteration_ns"]);
    assert!(!answer("calibrate insertion_sort --target-ms 2").unwrap().contains("operations"));
}

#[test]
fn touch_prints_whole_pages() {
    assert_eq!(answer("touch --bytes 5000").unwrap(), "8192\n");
}

#[test]
fn help_is_no_error_and_shows_an_example() {
    assert!(answer("--help").unwrap().contains("Example:"));
    assert!(answer("--version").unwrap().starts_with("steelyard-work "));
}

#[test]
fn wrong_usage_names_the_input_and_exits_with_2() {
    for (line, part) in [
        ("", "no command"),
        ("kernels", "`kernels` is not a command; known: `kernel`"),
        ("kernel", "name of a kernel is missing"),
        ("kernel --size 3", "name of a kernel is missing"),
        ("kernel bubble --size 3 --seed 1", "`bubble` is not a kernel; known: `exp_float`"),
        ("kernel qsort --seed 1", "`--size` is missing"),
        ("kernel qsort --size 10", "`--seed` is missing"),
        ("kernel qsort --size 10 --seed 1 --operations 5", "`qsort` takes no `--operations`"),
        ("kernel bsearch --size 10 --seed 1 --repeat 0", "`--repeat` is `0`; allowed"),
        ("kernel bsearch --size 99999999999 --seed 1", "`--size` is `99999999999`; allowed"),
        ("stress disk", "`disk` is not a stressor"),
        ("stress cpu --seconds 0", "`--seconds` is `0`; allowed"),
        ("stress cpu --bytes 5", "`cpu` takes no `--bytes`"),
        ("spin", "`--ms` is missing"),
        ("calibrate qsort", "`--target-ms` is missing"),
    ] {
        let error = answer(line).unwrap_err();
        assert_eq!(error.exit_code(), 2, "{line}");
        assert!(error.to_string().contains(part), "`{line}` says `{error}`");
    }
}

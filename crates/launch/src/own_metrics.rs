//! What programs say of themselves: lines `name value unit [iteration [warmup|measure]]`.

use steelyard_model::{OwnMeasurement, Phase};

/// Longest name and unit of a measurement [bytes].
const LONGEST_WORD_BYTES: usize = 64;

/// Reads a report. Lines that are not measurements are counted, not kept.
pub(crate) fn parse(report: &str) -> (Vec<OwnMeasurement>, usize) {
    let mut malformed = 0;
    let measurements = report
        .lines()
        .filter(|line| !line.trim().is_empty())
        .filter_map(|line| {
            let measurement = parse_line(line);
            malformed += usize::from(measurement.is_none());
            measurement
        })
        .collect();
    (measurements, malformed)
}

fn parse_line(line: &str) -> Option<OwnMeasurement> {
    let mut words = line.split_ascii_whitespace();
    let (metric, value, unit) = (words.next()?, words.next()?, words.next()?);
    let value: f64 = value.parse().ok().filter(|value: &f64| value.is_finite())?;
    let iteration = words.next().map_or(Some(1), |word| word.parse().ok())?;
    let phase = match words.next() {
        None | Some("measure") => Phase::Measure,
        Some("warmup") => Phase::Warmup,
        Some(_) => return None,
    };
    let is_readable = |word: &str| word.len() <= LONGEST_WORD_BYTES && word.chars().all(can_be_seen);
    if words.next().is_some() || !is_readable(metric) || !is_readable(unit) {
        return None;
    }
    Some(OwnMeasurement { metric: metric.into(), value, unit: unit.into(), iteration, phase })
}

/// Whether a character shows: one that does not makes a name look like another.
fn can_be_seen(character: char) -> bool {
    character.is_ascii_graphic() || (!character.is_ascii() && character.escape_debug().len() == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_long_lines_are_read() {
        let (found, malformed) = parse("cpu 123 ns\n\nwall 1.5 s 3 warmup\n");
        assert_eq!(malformed, 0);
        assert_eq!(
            (found[0].metric.as_str(), found[0].iteration, found[0].phase),
            ("cpu", 1, Phase::Measure)
        );
        assert_eq!((found[1].iteration, found[1].phase), (3, Phase::Warmup));
    }

    #[test]
    fn nonsense_is_counted() {
        let (found, malformed) = parse("cpu\ncpu x ns\ncpu inf ns\ncpu 1 ns 0 later\ncpu 1 ns 1 measure x\n");
        assert!(found.is_empty());
        assert_eq!(malformed, 5);
    }

    #[test]
    fn a_name_and_a_unit_are_short_words_that_can_be_read() {
        let zeros = "\0".repeat(1 << 20);
        let long = "x".repeat(LONGEST_WORD_BYTES + 1);
        for (name, unit) in [("cpu", &zeros), (&*zeros, &"ns".into()), ("cpu", &long), (&*long, &"ns".into())]
        {
            assert_eq!(parse(&format!("{name} 1 {unit}\n")), (Vec::new(), 1));
        }
        assert_eq!(parse("\u{1b}[2J 1 ns\ncpu 1 n\u{7f}s\n"), (Vec::new(), 2));
        for unseen in ['\u{200b}', '\u{202e}', '\u{a0}', '\u{ad}', '\u{feff}', '\u{2028}', '\u{e0041}'] {
            assert_eq!(parse(&format!("{unseen}outside-cpu 1 ns\n")), (Vec::new(), 1), "{unseen:?}");
        }
        for unit in ["\u{b5}s", "\u{b0}C", "m\u{b2}", "\u{20ac}", "\u{3a9}", "\u{2030}", "%", "MiB/s"] {
            assert_eq!(parse(&format!("Zeit 1 {unit}\n")).0[0].unit, unit);
        }
    }
}

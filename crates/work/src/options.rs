use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use crate::WorkError;

/// The options of one command: `--name value`, `--name=value`, and `--flag`.
#[derive(Debug)]
pub struct Options<'a> {
    values: BTreeMap<&'a str, &'a str>,
}

impl<'a> Options<'a> {
    /// Reads the options of a line; `valued` and `flags` list the known ones without dashes.
    ///
    /// # Errors
    ///
    /// [`WorkError::Usage`] for an unknown option, one given twice, one without its value, or a
    /// word that is no option.
    pub fn read(line: &'a [String], valued: &[&str], flags: &[&str]) -> Result<Self, WorkError> {
        let mut given = BTreeMap::new();
        let mut rest = line.iter();
        while let Some(word) = rest.next() {
            let Some(option) = word.strip_prefix("--") else {
                return Err(WorkError::usage(format!("`{word}` is not an option; {}", known(valued, flags))));
            };
            let (name, attached) = match option.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (option, None),
            };
            let value = if flags.contains(&name) {
                if attached.is_some() {
                    return Err(WorkError::usage(format!("`--{name}` takes no value")));
                }
                ""
            } else if valued.contains(&name) {
                attached
                    .or_else(|| rest.next().map(String::as_str))
                    .ok_or_else(|| WorkError::usage(format!("`--{name}` needs a value")))?
            } else {
                return Err(WorkError::usage(format!("`--{name}` is unknown; {}", known(valued, flags))));
            };
            if given.insert(name, value).is_some() {
                return Err(WorkError::usage(format!("`--{name}` is given twice")));
            }
        }
        Ok(Self { values: given })
    }

    /// Whether a flag is given.
    #[must_use]
    pub fn has(&self, flag: &str) -> bool {
        self.values.contains_key(flag)
    }

    /// A whole number, if given.
    ///
    /// # Errors
    ///
    /// [`WorkError::Usage`] if it is no whole number or outside the range.
    pub fn number(&self, name: &str, allowed: &RangeInclusive<u64>) -> Result<Option<u64>, WorkError> {
        let Some(text) = self.values.get(name) else { return Ok(None) };
        match text.parse::<u64>() {
            Ok(number) if allowed.contains(&number) => Ok(Some(number)),
            _ => {
                let (low, high) = (allowed.start(), allowed.end());
                Err(WorkError::usage(format!(
                    "`--{name}` is `{text}`; allowed: a whole number from {low} to {high}"
                )))
            }
        }
    }

    /// A whole number that must be given.
    ///
    /// # Errors
    ///
    /// [`WorkError::Usage`] if it is absent, no whole number or outside the range.
    pub fn required(&self, name: &str, allowed: &RangeInclusive<u64>) -> Result<u64, WorkError> {
        self.number(name, allowed)?.ok_or_else(|| WorkError::usage(format!("`--{name}` is missing")))
    }
}

fn known(valued: &[&str], flags: &[&str]) -> String {
    let names: Vec<String> = valued
        .iter()
        .map(|name| format!("`--{name} N`"))
        .chain(flags.iter().map(|name| format!("`--{name}`")))
        .collect();
    format!("known: {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    fn message(text: &str) -> String {
        let words = words(text);
        let options = Options::read(&words, &["size", "seed"], &["flag"]);
        match options.and_then(|options| options.required("size", &(1..=100))) {
            Ok(size) => panic!("accepted `{text}` as {size}"),
            Err(error) => {
                assert_eq!(error.exit_code(), 2);
                error.to_string()
            }
        }
    }

    #[test]
    fn both_spellings_give_the_value() {
        for text in ["--size 8 --flag", "--flag --size=8"] {
            let words = words(text);
            let options = Options::read(&words, &["size"], &["flag"]).unwrap();
            assert_eq!(options.required("size", &(1..=100)).unwrap(), 8);
            assert!(options.has("flag"));
        }
    }

    #[test]
    fn every_mistake_names_the_input_and_what_is_allowed() {
        assert!(message("--sise 8").contains("`--sise` is unknown; known: `--size N`"));
        assert!(message("8").contains("`8` is not an option"));
        assert!(message("--size").contains("`--size` needs a value"));
        assert!(message("--size 8 --size 9").contains("given twice"));
        assert!(message("--size 0").contains("`--size` is `0`; allowed: a whole number from 1 to 100"));
        assert!(message("--size 1e3").contains("1e3"));
        assert!(message("--size 18446744073709551616").contains("allowed"));
        assert!(message("--seed 3").contains("`--size` is missing"));
        assert!(message("--flag=3").contains("takes no value"));
    }
}

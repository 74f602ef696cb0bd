//! The command line: options with a value each, or none.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::GovernError;

/// Options of a verb and what follows `--`.
#[derive(Debug, Default)]
pub(crate) struct Given {
    options: Vec<(String, Option<String>)>,
    pub(crate) command: Vec<OsString>,
}

impl Given {
    /// Splits words into options, of which those in `flags` have no value, and a command.
    pub(crate) fn read(words: &[OsString], flags: &[&str]) -> Result<Self, GovernError> {
        let mut given = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let Some(text) = word.to_str() else {
                return Err(GovernError::usage(format!("`{}` is not an option", word.display())));
            };
            if text == "--" {
                given.command = words.cloned().collect();
                break;
            }
            if !text.starts_with("--") {
                return Err(GovernError::usage(format!(
                    "`{text}` is not an option; a command stands behind `--`"
                )));
            }
            if flags.contains(&text) {
                given.options.push((text.to_owned(), None));
                continue;
            }
            let value =
                words.next().and_then(|value| value.to_str()).filter(|value| !value.starts_with("--"));
            let Some(value) = value else {
                return Err(GovernError::usage(format!("`{text}` has no value, or is not an option")));
            };
            given.options.push((text.to_owned(), Some(value.to_owned())));
        }
        Ok(given)
    }

    pub(crate) fn flag(&mut self, name: &str) -> bool {
        let before = self.options.len();
        self.options.retain(|(other, _)| other != name);
        self.options.len() < before
    }

    /// Every value of an option, in order.
    pub(crate) fn values(&mut self, name: &str) -> Vec<String> {
        let (taken, left): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.options).into_iter().partition(|(other, _)| other == name);
        self.options = left;
        taken.into_iter().filter_map(|(_, value)| value).collect()
    }

    /// The last value of an option: a later one wins.
    pub(crate) fn value(&mut self, name: &str) -> Option<String> {
        self.values(name).pop()
    }

    pub(crate) fn path(&mut self, name: &str) -> Option<PathBuf> {
        self.value(name).map(PathBuf::from)
    }

    /// A number within bounds.
    pub(crate) fn number(&mut self, name: &str, least: f64, most: f64) -> Result<Option<f64>, GovernError> {
        let Some(text) = self.value(name) else { return Ok(None) };
        match text.parse::<f64>() {
            Ok(number) if (least..=most).contains(&number) => Ok(Some(number)),
            _ => Err(GovernError::usage(format!("`{name} {text}`: allowed: {least} to {most}"))),
        }
    }

    /// Refuses what nobody has taken.
    pub(crate) fn finish(&self) -> Result<(), GovernError> {
        match self.options.first() {
            None => Ok(()),
            Some((name, _)) => Err(GovernError::usage(format!("`{name}` is not an option here"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Given, GovernError> {
        let words: Vec<OsString> = text.split(' ').map(OsString::from).collect();
        Given::read(&words, &["--quiet"])
    }

    #[test]
    fn options_end_at_the_separator() {
        let mut given = read("--quiet --require idle -- make --quiet -j4").unwrap();
        assert!(given.flag("--quiet") && given.value("--require").as_deref() == Some("idle"));
        given.finish().unwrap();
        assert_eq!(given.command, ["make", "--quiet", "-j4"]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let problem = |text: &str| read(text).unwrap_err().to_string();
        assert!(problem("make").contains("`make` is not an option"));
        assert!(problem("--require -- make").contains("`--require` has no value"));
        let mut given = read("--calm-ms 9 --color red").unwrap();
        let error = given.number("--calm-ms", 10.0, 20.0).unwrap_err().to_string();
        assert_eq!(error, "`--calm-ms 9`: allowed: 10 to 20");
        assert!(given.finish().unwrap_err().to_string().contains("`--color` is not an option here"));
    }
}

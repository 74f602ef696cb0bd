//! Options of a command line.

use crate::LoadError;

/// Options that were given and not yet taken.
#[derive(Debug)]
pub(crate) struct Given {
    pairs: Vec<(String, String)>,
    flags: Vec<String>,
}

impl Given {
    /// Reads `--name value` and `--name=value`; `flags` are the names that have no value.
    pub(crate) fn read(words: &[String], flags: &[&str]) -> Result<Self, LoadError> {
        let mut given = Self { pairs: Vec::new(), flags: Vec::new() };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if !word.starts_with("--") {
                return Err(LoadError::usage(format!("`{word}` is not an option")));
            }
            if flags.contains(&word.as_str()) {
                given.flags.push(word.clone());
                continue;
            }
            let (name, value) = match word.split_once('=') {
                Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                None => (word.clone(), words.next().cloned()),
            };
            let Some(value) = value else {
                return Err(LoadError::usage(format!("`{name}` needs a value")));
            };
            if given.pairs.iter().any(|(known, _)| *known == name) {
                return Err(LoadError::usage(format!("`{name}` is given twice")));
            }
            given.pairs.push((name, value));
        }
        Ok(given)
    }

    pub(crate) fn take(&mut self, name: &str) -> Option<String> {
        let index = self.pairs.iter().position(|(known, _)| known == name)?;
        Some(self.pairs.swap_remove(index).1)
    }

    /// An option that must be there.
    pub(crate) fn need(&mut self, name: &str, meaning: &str) -> Result<String, LoadError> {
        self.take(name).ok_or_else(|| LoadError::usage(format!("`{name}` is missing: {meaning}")))
    }

    pub(crate) fn has_flag(&mut self, name: &str) -> bool {
        let length = self.flags.len();
        self.flags.retain(|known| known != name);
        self.flags.len() < length
    }

    /// A whole number.
    pub(crate) fn number(&mut self, name: &str, low: u64, high: u64) -> Result<Option<u64>, LoadError> {
        let Some(text) = self.take(name) else { return Ok(None) };
        match text.parse() {
            Ok(number) if (low..=high).contains(&number) => Ok(Some(number)),
            _ => Err(LoadError::usage(format!(
                "`{name}` is `{text}`; allowed: whole numbers from {low} to {high}"
            ))),
        }
    }

    /// A count of things, at most a million.
    pub(crate) fn count(&mut self, name: &str, low: u32, usual: u32) -> Result<u32, LoadError> {
        let number = self.number(name, u64::from(low), 1_000_000)?;
        Ok(number.and_then(|number| u32::try_from(number).ok()).unwrap_or(usual))
    }

    /// A real number.
    pub(crate) fn real(&mut self, name: &str, low: f64, high: f64) -> Result<Option<f64>, LoadError> {
        let Some(text) = self.take(name) else { return Ok(None) };
        match text.parse() {
            Ok(number) if (low..=high).contains(&number) => Ok(Some(number)),
            _ => {
                Err(LoadError::usage(format!("`{name}` is `{text}`; allowed: numbers from {low} to {high}")))
            }
        }
    }

    pub(crate) fn choice<T: Copy>(
        &mut self,
        name: &str,
        known: &[(T, &str)],
    ) -> Result<Option<T>, LoadError> {
        let Some(text) = self.take(name) else { return Ok(None) };
        if let Some((value, _)) = known.iter().find(|(_, known)| *known == text) {
            return Ok(Some(*value));
        }
        let names: Vec<&str> = known.iter().map(|(_, name)| *name).collect();
        Err(LoadError::usage(format!("`{name}` is `{text}`; allowed: {}", names.join(", "))))
    }

    /// A list of CPUs that this process may use, as in `0,2-3`.
    pub(crate) fn cpus(&mut self, name: &str) -> Result<Option<Vec<usize>>, LoadError> {
        let Some(text) = self.take(name) else { return Ok(None) };
        let wrong =
            || LoadError::usage(format!("`{name}` is `{text}`; allowed: numbers of CPUs, as in `0,2-3`"));
        let mut cpus = Vec::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let first: usize = first.trim().parse().map_err(|_| wrong())?;
            let last: usize = last.trim().parse().map_err(|_| wrong())?;
            if first > last || last > 65_535 {
                return Err(wrong());
            }
            cpus.extend(first..=last);
        }
        crate::settings::check_cpus(name, &cpus)?;
        Ok(Some(cpus))
    }

    pub(crate) fn finish(self) -> Result<(), LoadError> {
        let rest = self.pairs.first().map(|(name, _)| name).or(self.flags.first());
        match rest {
            None => Ok(()),
            Some(name) => Err(LoadError::usage(format!("`{name}` is not an option here"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(text: &str) -> Result<Given, LoadError> {
        let words: Vec<String> = text.split_ascii_whitespace().map(str::to_owned).collect();
        Given::read(&words, &["--json"])
    }

    #[test]
    fn options_are_taken_once_and_nothing_may_be_left() {
        let mut options = given("--rate 2.5 --json --threads=4 --cpus 0").unwrap();
        assert_eq!(options.real("--rate", 0.0, 10.0).unwrap(), Some(2.5));
        assert_eq!(options.count("--threads", 1, 9).unwrap(), 4);
        assert_eq!(options.count("--connections", 1, 9).unwrap(), 9);
        assert!(options.has_flag("--json"));
        assert_eq!(options.cpus("--cpus").unwrap(), Some(vec![0]));
        options.finish().unwrap();
    }

    #[test]
    fn what_is_wrong_is_named_with_what_is_allowed() {
        let problem = |text: &str| {
            let mut options = match given(text) {
                Ok(options) => options,
                Err(error) => return error.to_string(),
            };
            let found = options.number("--threads", 1, 8).err().map(|error| error.to_string());
            let found = found.or_else(|| options.cpus("--cpus").err().map(|error| error.to_string()));
            found.unwrap_or_else(|| options.finish().unwrap_err().to_string())
        };
        assert!(problem("--threads 9").contains("is `9`; allowed: whole numbers from 1 to 8"));
        assert!(problem("--threads").contains("needs a value"));
        assert!(problem("threads").contains("`threads` is not an option"));
        assert!(problem("--threads 1 --threads 2").contains("given twice"));
        assert!(problem("--json").contains("`--json` is not an option here"));
        assert!(problem("--cpus 3-1").contains("as in `0,2-3`"));
        assert!(problem("--cpus 60000").contains("names CPU 60000"));
    }
}

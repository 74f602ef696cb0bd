//! Reads a JSON object strictly: every key is known, every value is possible, and the error names both.

use serde_json::{Map, Value};

use crate::LoadError;

/// An object whose keys are taken one by one.
#[derive(Debug)]
pub(crate) struct Reader {
    place: String,
    entries: Map<String, Value>,
}

impl Reader {
    pub(crate) fn new(place: &str, value: Value) -> Result<Self, LoadError> {
        match value {
            Value::Object(entries) => Ok(Self { place: place.to_owned(), entries }),
            other => Err(LoadError::usage(format!("`{place}` is `{other}`; allowed: an object"))),
        }
    }

    /// Name of a key for an error.
    pub(crate) fn path(&self, key: &str) -> String {
        if self.place == "plan" { key.to_owned() } else { format!("{}.{key}", self.place) }
    }

    fn wrong(&self, key: &str, value: &Value, allowed: &str) -> LoadError {
        LoadError::usage(format!("`{}` is `{value}`; allowed: {allowed}", self.path(key)))
    }

    /// The value, or nothing where it is absent or null.
    fn take(&mut self, key: &str) -> Option<Value> {
        self.entries.remove(key).filter(|value| !value.is_null())
    }

    fn need(&mut self, key: &str, allowed: &str) -> Result<Value, LoadError> {
        self.take(key)
            .ok_or_else(|| LoadError::usage(format!("`{}` is missing; allowed: {allowed}", self.path(key))))
    }

    /// An object.
    pub(crate) fn object(&mut self, key: &str) -> Result<Self, LoadError> {
        let value = self.need(key, "an object")?;
        Self::new(&self.path(key), value)
    }

    /// A whole number that may be absent.
    pub(crate) fn whole(&mut self, key: &str, low: i64, high: i64) -> Result<Option<i64>, LoadError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        // Other programs write whole numbers as `6.0`.
        #[expect(clippy::cast_possible_truncation, reason = "without a fraction, and within +-2^53")]
        let whole = value.as_i64().or_else(|| {
            value.as_f64().filter(|real| real.fract() == 0.0 && real.abs() < 9e15).map(|real| real as i64)
        });
        match whole {
            Some(number) if (low..=high).contains(&number) => Ok(Some(number)),
            _ => Err(self.wrong(key, &value, &format!("whole numbers from {low} to {high}"))),
        }
    }

    /// A count that must be there.
    pub(crate) fn count(&mut self, key: &str, low: u32, high: u32) -> Result<u32, LoadError> {
        let number = self.whole(key, i64::from(low), i64::from(high))?;
        let number = number.and_then(|number| u32::try_from(number).ok());
        number.ok_or_else(|| {
            LoadError::usage(format!(
                "`{}` is missing; allowed: whole numbers from {low} to {high}",
                self.path(key)
            ))
        })
    }

    /// A real number that may be absent.
    pub(crate) fn real(&mut self, key: &str, low: f64, high: f64) -> Result<Option<f64>, LoadError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        match value.as_f64() {
            Some(number) if (low..=high).contains(&number) => Ok(Some(number)),
            _ => Err(self.wrong(key, &value, &format!("numbers from {low} to {high}"))),
        }
    }

    /// A name out of a list, or nothing where it is absent.
    pub(crate) fn choice<T: Copy>(&mut self, key: &str, known: &[(T, &str)]) -> Result<Option<T>, LoadError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        let found = known.iter().find(|(_, name)| value.as_str() == Some(*name));
        let names: Vec<&str> = known.iter().map(|(_, name)| *name).collect();
        found.map(|(choice, _)| Some(*choice)).ok_or_else(|| self.wrong(key, &value, &names.join(", ")))
    }

    /// A name out of a list that must be there.
    pub(crate) fn need_choice<T: Copy>(&mut self, key: &str, known: &[(T, &str)]) -> Result<T, LoadError> {
        let names: Vec<&str> = known.iter().map(|(_, name)| *name).collect();
        let missing =
            || LoadError::usage(format!("`{}` is missing; allowed: {}", self.path(key), names.join(", ")));
        let missing = missing();
        self.choice(key, known)?.ok_or(missing)
    }

    /// A text, or nothing where it is absent.
    pub(crate) fn text(&mut self, key: &str) -> Result<Option<String>, LoadError> {
        match self.take(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(self.wrong(key, &other, "a text")),
        }
    }

    /// A list of CPUs that must be there.
    pub(crate) fn cpus(&mut self, key: &str) -> Result<Vec<usize>, LoadError> {
        let allowed = "a list of numbers of CPUs, as in `[0, 1]`";
        let value = self.need(key, allowed)?;
        let numbers: Option<Vec<usize>> = value.as_array().and_then(|entries| {
            entries.iter().map(|entry| entry.as_u64().and_then(|cpu| usize::try_from(cpu).ok())).collect()
        });
        let cpus = numbers.ok_or_else(|| self.wrong(key, &value, allowed))?;
        crate::settings::check_cpus(&self.path(key), &cpus)?;
        Ok(cpus)
    }

    /// A switch: true, false, 1, 0, or nothing where it is absent.
    pub(crate) fn switch(&mut self, key: &str) -> Result<Option<bool>, LoadError> {
        match self.take(key) {
            None => Ok(None),
            Some(Value::Bool(is_on)) => Ok(Some(is_on)),
            Some(value) => match value.as_i64() {
                Some(0) => Ok(Some(false)),
                Some(1) => Ok(Some(true)),
                _ => Err(self.wrong(key, &value, "true, false, 1, 0")),
            },
        }
    }

    /// A command: a list of words, or one text that is split at blanks; nothing where it is absent.
    pub(crate) fn command(&mut self, key: &str) -> Result<Option<Vec<String>>, LoadError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        let words: Option<Vec<String>> = match &value {
            Value::String(text) => Some(text.split_ascii_whitespace().map(str::to_owned).collect()),
            Value::Array(words) => words.iter().map(|word| word.as_str().map(str::to_owned)).collect(),
            _ => None,
        };
        let words = words.filter(|words| !words.is_empty());
        words.map(Some).ok_or_else(|| self.wrong(key, &value, "a command, as a list of words"))
    }

    /// A command that must be there.
    pub(crate) fn need_command(&mut self, key: &str) -> Result<Vec<String>, LoadError> {
        let found = self.command(key)?;
        found.ok_or_else(|| LoadError::usage(format!("`{}` is missing; allowed: a command", self.path(key))))
    }

    /// Fails if a key is left.
    pub(crate) fn finish(self, known: &str) -> Result<(), LoadError> {
        match self.entries.keys().next() {
            None => Ok(()),
            Some(key) => {
                Err(LoadError::usage(format!("`{}` is unknown; known here: {known}", self.path(key))))
            }
        }
    }
}

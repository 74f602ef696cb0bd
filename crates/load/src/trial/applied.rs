//! What was set for the policy, and what could not be.

use std::io;

use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::LoadError;
use crate::settings::{Class, set_class, set_cpus, set_nice};
use crate::trial::plan::Side;

/// Settings with what was read back.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    pub(crate) applied: Vec<Value>,
    pub(crate) missing: Vec<Value>,
}

impl Settings {
    /// Keeps what became of a setting: `place` is where it was written.
    pub(super) fn keep(&mut self, setting: &str, wanted: &Value, place: &str, found: io::Result<Value>) {
        match found {
            Ok(found) if found == *wanted => {
                self.applied.push(json!({"setting": setting, "value": found, "where": place}));
            }
            Ok(found) => {
                let reason = format!("`{place}` reads {found} after {wanted} was written");
                self.miss(setting, wanted, &reason);
            }
            Err(error) => self.miss(setting, wanted, &format!("`{place}`: {error}")),
        }
    }

    /// Keeps what could not be set.
    pub(super) fn miss(&mut self, setting: &str, wanted: &Value, reason: &str) {
        self.missing.push(json!({"setting": setting, "value": wanted, "reason": reason}));
    }

    /// Fails if anything could not be set: another policy is never measured in the place of the wanted one.
    pub(super) fn check(&self) -> Result<(), LoadError> {
        let Some(first) = self.missing.first() else { return Ok(()) };
        let text = |name: &str| first[name].as_str().unwrap_or_default();
        Err(LoadError::capability(
            format!(
                "`{}` could not be set, so the policy was not measured: {}",
                text("setting"),
                text("reason")
            ),
            "`missing` in `header.json` names every setting that could not be set",
        ))
    }

    /// Sets CPUs, nice value and class of a process that still has one thread.
    ///
    /// `part` is its name in the plan; the client has the settings of the service and, in the class `fifo`,
    /// the priority above, so that it is never the service that delays its own requests.
    pub(crate) fn set_process(&mut self, part: &str, process: Pid, side: &Side, cpus: &[usize]) {
        self.keep(
            &format!("{part}_cpus"),
            &json!(cpus),
            &format!("sched_setaffinity({process})"),
            set_cpus(process, cpus).map(|cpus| json!(cpus)),
        );
        if let Some(nice) = side.nice {
            self.keep(
                &format!("{part}_nice"),
                &json!(nice),
                &format!("setpriority({process})"),
                set_nice(process, nice).map(|nice| json!(nice)),
            );
        }
        if let Some(class) = side.class {
            let priority = if class == Class::Fifo { side.priority.unwrap_or(1) } else { 0 };
            let describe = |(class, priority): (Class, i32)| match class {
                Class::Fifo => json!({"class": class.name(), "priority": priority}),
                _ => json!(class.name()),
            };
            self.keep(
                &format!("{part}_class"),
                &describe((class, priority)),
                &format!("sched_setscheduler({process})"),
                set_class(process, class, priority).map(describe),
            );
        }
    }
}

/// How the client of a service is scheduled.
pub(super) fn client_side(service: &Side) -> Side {
    let priority = service.priority.unwrap_or(1) + 1;
    Side { priority: Some(priority), ..service.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_value_than_wanted_is_missing() {
        let mut settings = Settings::default();
        settings.keep("a", &json!(1), "file", Ok(json!(1)));
        settings.keep("b", &json!(1), "file", Ok(json!(2)));
        settings.keep("c", &json!(1), "file", Err(io::ErrorKind::PermissionDenied.into()));
        assert_eq!(settings.applied, [json!({"setting": "a", "value": 1, "where": "file"})]);
        assert_eq!(settings.check().unwrap_err().exit_code(), 3);
        assert!(Settings::default().check().is_ok());
        assert_eq!(settings.missing[0]["reason"], "`file` reads 2 after 1 was written");
        assert_eq!(settings.missing[1]["reason"], "`file`: permission denied");
    }

    #[test]
    fn the_client_stands_above_the_service() {
        let service = Side { class: Some(Class::Fifo), priority: Some(10), ..Side::default() };
        let client = client_side(&service);
        assert_eq!((client.class, client.priority), (Some(Class::Fifo), Some(11)));
    }
}

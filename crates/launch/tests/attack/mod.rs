//! Hostile programs. The test executable starts itself inside the sandbox as one of them.
//!
//! Each tries to get out and prints one line per attempt: `contained: ...` or `ESCAPED: ...`.
//! Exit code 0 means that nothing escaped.

mod files;
pub(crate) mod kernel;
mod network;
mod privileges;
mod processes;
mod resources;
mod storms;

use std::fmt::Display;
use std::io;

/// First argument that makes the executable an attack.
pub(crate) const MARK: &str = "--attack";

/// What an attack found.
#[derive(Default)]
pub(crate) struct Findings {
    escaped: u32,
}

impl Findings {
    /// An attempt that must fail.
    pub(crate) fn must_fail<T, E: Display>(&mut self, attempt: &str, result: Result<T, E>) {
        match result {
            Ok(_) => self.escape(attempt),
            Err(error) => println!("contained: {attempt}: {error}"),
        }
    }

    /// A system call that must fail.
    pub(crate) fn must_refuse(&mut self, attempt: &str, answer: i64) {
        self.must_fail(attempt, answered(answer));
    }

    /// A system call that the filter must refuse with `EPERM`.
    pub(crate) fn must_filter(&mut self, attempt: &str, answer: i64) {
        match answered(answer) {
            Err(error) if error.raw_os_error() == Some(libc::EPERM) => {
                println!("contained: {attempt}: filtered");
            }
            Err(error) => self.escape(&format!("{attempt}: not filtered, but {error}")),
            Ok(_) => self.escape(attempt),
        }
    }

    /// A fact that must hold.
    pub(crate) fn must_hold(&mut self, fact: &str, holds: bool) {
        if holds {
            println!("contained: {fact}");
        } else {
            self.escape(fact);
        }
    }

    fn escape(&mut self, what: &str) {
        self.escaped += 1;
        println!("ESCAPED: {what}");
    }
}

/// The answer of a raw system call as a result.
pub(crate) fn answered(answer: i64) -> io::Result<i64> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}

type Attack = fn(&mut Findings, &[String]);

fn attacks() -> Vec<(&'static str, Attack)> {
    [
        files::ATTACKS,
        kernel::ATTACKS,
        network::ATTACKS,
        privileges::ATTACKS,
        processes::ATTACKS,
        resources::ATTACKS,
        storms::ATTACKS,
    ]
    .concat()
}

/// If the arguments say so, be that attack and never return.
pub(crate) fn become_attack_if_asked() {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.get(1).is_none_or(|first| first != MARK) {
        return;
    }
    let name = arguments.get(2).cloned().unwrap_or_default();
    let Some((_, attack)) = attacks().into_iter().find(|(known, _)| *known == name) else {
        println!("ESCAPED: no attack is called `{name}`");
        std::process::exit(1);
    };
    let mut findings = Findings::default();
    attack(&mut findings, &arguments[3..]);
    std::process::exit(i32::from(findings.escaped > 0));
}

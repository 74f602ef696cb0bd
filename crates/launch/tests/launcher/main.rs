//! The launcher as a program, on every control group layout this host can show.
//!
//! `STEELYARD_EXPECT_CGROUP=v2|v1|hybrid|none` fails the whole when the launcher chooses another.
#![expect(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "this is a test")]

mod client;
mod errors;
mod layout;
mod lifecycle;
mod limits;
mod measures;
mod placement;
#[path = "../../src/main.rs"]
#[allow(unused_imports, dead_code, reason = "its unit tests have no harness here")]
mod program;
mod programs;
mod statuses;
mod streams;

use libtest_mimic::{Arguments, Failed, Trial};

use layout::Layout;

/// A case: its name and what it does on a layout.
type Case = (&'static str, fn(Layout));

fn main() {
    programs::become_program_if_asked();
    layout::become_launcher_if_asked();
    let mut arguments = Arguments::from_args();
    // Cases look at processes and groups of the whole host.
    arguments.test_threads = Some(1);
    let cases: Vec<Case> = [
        statuses::CASES,
        limits::CASES,
        streams::CASES,
        errors::CASES,
        lifecycle::CASES,
        measures::CASES,
        placement::CASES,
    ]
    .concat();
    let mut trials = vec![Trial::test("layout::expected", || Ok(layout::expected()?))];
    for layout in Layout::shown_here() {
        for (name, case) in &cases {
            let case = *case;
            trials.push(Trial::test(format!("{}::{name}", layout.name()), move || {
                case(layout);
                Ok::<(), Failed>(())
            }));
        }
    }
    libtest_mimic::run(&arguments, trials).exit();
}

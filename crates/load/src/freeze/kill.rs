//! How long a frozen process lives after `SIGKILL`.

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::LoadError;
use crate::clock::{now_ns, sleep_until, wait_until};
use crate::freeze::plan::{Plan, READY_LIMIT_MS};
use crate::part::Part;
use crate::trial::Settings;

/// SOURCE: the requirement: a frozen task that is killed is gone within a second.
const LIMIT_NS: u64 = 1_000_000_000;
/// How exactly the end is seen.
const STEP_NS: u64 = 1_000_000;

/// Freezes some processes, and kills one after the other while they are frozen, evenly over the time.
pub(super) fn run(plan: &Plan) -> Result<Value, LoadError> {
    let mut settings = Settings::default();
    let mut hogs = plan.start_hogs(&mut settings)?;
    let mut victims = Vec::new();
    for number in 0..plan.kills {
        let name = format!("victim_{number}");
        let words = [
            "park-work".to_owned(),
            "--kind=hog".to_owned(),
            format!("--unit-iterations={}", plan.unit_iterations),
        ];
        let mut victim = Part::start(&name, &words)?;
        settings.set_process(&name, victim.pid(), &plan.side, &plan.cpus);
        victim.order("begin")?;
        victim.await_line("ready", READY_LIMIT_MS)?;
        victims.push(victim);
    }
    victims.iter_mut().try_for_each(|victim| victim.order("go"))?;
    wait_until(now_ns() + plan.before_ms * 1_000_000, 0);
    hogs.iter_mut().try_for_each(|hog| hog.order("go"))?;
    let start_ns = now_ns();
    let gap_ns = plan.seconds * 1_000_000_000 / (u64::from(plan.kills) + 1);
    let mut times = Vec::new();
    for (number, victim) in (1..).zip(&mut victims) {
        wait_until(start_ns + number * gap_ns, 0);
        crate::signal::check()?;
        times.push(time_to_die(victim, now_ns() + plan.after_limit_s * 1_000_000_000));
    }
    drop(hogs);
    let is_right = times.iter().all(|time| time.is_some_and(|time_ns| time_ns < LIMIT_NS));
    let more = json!({"killed_ns": times, "limit_ns": LIMIT_NS, "resolution_ns": STEP_NS});
    Ok(plan.facts(&settings, is_right, &more))
}

/// Time from the signal until the process can be waited for [ns]; nothing if it outlives the limit.
fn time_to_die(victim: &mut Part, limit_ns: u64) -> Option<u64> {
    let start_ns = now_ns();
    victim.signal(Signal::SIGKILL);
    while victim.ended().is_none() {
        if now_ns() >= limit_ns || crate::signal::is_asked_to_end() {
            return None;
        }
        sleep_until(now_ns() + STEP_NS);
    }
    Some(now_ns() - start_ns)
}

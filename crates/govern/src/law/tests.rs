use proptest::prelude::*;

use super::*;

const TICK_NS: u64 = 100_000_000;

fn settings() -> Settings {
    Settings::for_cpus(4.0)
}

/// Looks once per tick (or when the law asks) at a pressure that is simulated from the time and from the CPUs that
/// commands use; gives each time and allowance.
fn follow_both(
    law: &mut Law,
    from_ns: u64,
    until_ns: u64,
    mut pressure: impl FnMut(u64, f64) -> f64,
) -> Vec<(u64, Allowance)> {
    let mut now_ns = from_ns;
    let mut seen = Vec::new();
    while now_ns < until_ns {
        let used_cpus = match law.allowance() {
            Allowance::Free => 4.0,
            Allowance::Limited(cpus) => cpus,
            Allowance::Parked => 0.0,
        };
        let look = Observation { now_ns, pressure: pressure(now_ns, used_cpus), used_cpus: Some(used_cpus) };
        let decision = law.decide(look);
        seen.push((now_ns, decision.allowance));
        now_ns += decision.look_again_ns.unwrap_or(TICK_NS);
    }
    seen
}

/// The same at a pressure that commands change nothing of.
fn follow(
    law: &mut Law,
    from_ns: u64,
    until_ns: u64,
    pressure: impl Fn(u64) -> f64,
) -> Vec<(u64, Allowance)> {
    follow_both(law, from_ns, until_ns, |now_ns, _| pressure(now_ns))
}

/// A law that knows of a service that does not wait alone.
fn experienced() -> Law {
    let mut law = Law::new(settings());
    for tick in 0..10 {
        law.decide(Observation { now_ns: tick * TICK_NS, pressure: 0.0, used_cpus: Some(0.0) });
    }
    law
}

const KNOWN_NS: u64 = 10 * TICK_NS;

fn parked_spells(trace: &[(u64, Allowance)]) -> Vec<u64> {
    let mut spells = Vec::new();
    let mut begin = None;
    for (now_ns, allowance) in trace {
        match (allowance, begin) {
            (Allowance::Parked, None) => begin = Some(*now_ns),
            (Allowance::Parked, Some(_)) | (_, None) => {}
            (_, Some(since)) => {
                spells.push(now_ns - since);
                begin = None;
            }
        }
    }
    if let (Some(since), Some((last, _))) = (begin, trace.last()) {
        spells.push(last - since);
    }
    spells
}

#[test]
fn what_the_commands_cause_halves_the_quota_after_a_trial_and_then_parks() {
    let mut law = Law::new(settings());
    let caused = |_, used_cpus| if used_cpus > 0.0 { 0.9 } else { 0.0 };
    let quotas: Vec<Allowance> =
        follow_both(&mut law, 0, 12 * TICK_NS, caused).into_iter().map(|(_, allowance)| allowance).collect();
    assert_eq!(quotas[..5], [Allowance::Parked; 5], "the trial");
    assert_eq!(quotas[5..11], [2.0, 1.0, 0.5, 0.25, 0.125, 0.0625].map(Allowance::Limited));
    assert_eq!(quotas[11..], [Allowance::Parked]);
    assert_eq!(law.alone(), Some(0.0));
}

#[test]
fn a_service_that_is_overloaded_alone_leaves_them_nothing() {
    let mut law = Law::new(settings());
    let trace = follow(&mut law, 0, 60 * TICK_NS, |_| 0.9);
    assert!(trace.iter().all(|(_, allowance)| *allowance == Allowance::Parked));
}

#[test]
fn the_first_quota_is_below_what_is_used() {
    let mut law = experienced();
    let look = Observation { now_ns: KNOWN_NS, pressure: 0.5, used_cpus: Some(1.2) };
    assert_eq!(law.decide(look).allowance, Allowance::Limited(0.6));
}

#[test]
fn who_uses_nothing_is_left_alone() {
    let mut law = Law::new(settings());
    for now_ns in 0..50 {
        let look = Observation { now_ns: now_ns * TICK_NS, pressure: 1.0, used_cpus: Some(0.009) };
        assert_eq!(law.decide(look).allowance, Allowance::Free);
    }
    let look = Observation { now_ns: 50 * TICK_NS, pressure: 1.0, used_cpus: Some(0.011) };
    assert_eq!(law.decide(look).allowance, Allowance::Limited(0.5));
}

#[test]
fn between_the_thresholds_nothing_changes() {
    let mut law = experienced();
    follow(&mut law, KNOWN_NS, KNOWN_NS + 2 * TICK_NS, |_| 0.9);
    let held = law.allowance();
    let trace = follow(&mut law, KNOWN_NS + 2 * TICK_NS, 600 * TICK_NS, |_| 0.03);
    assert!(trace.iter().all(|(_, allowance)| *allowance == held));
}

#[test]
fn a_release_that_was_too_early_makes_the_next_one_wait_longer() {
    let mut law = experienced();
    let mut waits = Vec::new();
    let mut now_ns = KNOWN_NS;
    for _ in 0..7 {
        law.decide(Observation { now_ns, pressure: 0.9, used_cpus: Some(4.0) });
        let begin = now_ns;
        while law.allowance() != Allowance::Free {
            now_ns += TICK_NS;
            // Known anew, or the next pressure would be a trial.
            law.see_alone(Observation { now_ns, pressure: 0.0, used_cpus: Some(0.0) });
            law.decide(Observation { now_ns, pressure: 0.0, used_cpus: Some(1.0) });
        }
        waits.push(now_ns - begin);
        now_ns += TICK_NS;
    }
    assert!(waits.windows(2).all(|pair| pair[1] >= pair[0]) && waits[3] > 4 * waits[0], "{waits:?}");
    assert!(waits[6] <= settings().release_limit_ns());
    // A long calm forgets it.
    now_ns += 2 * settings().calm_limit_ns;
    law.see_alone(Observation { now_ns, pressure: 0.0, used_cpus: Some(0.0) });
    law.decide(Observation { now_ns, pressure: 0.9, used_cpus: Some(4.0) });
    assert_eq!(law.patience_ns, settings().calm_ns);
}

/// Shares of time that a service of Poisson arrivals waits, drawn by a small generator: often none, at times much.
fn queueing(seed: u64, mean: f64) -> impl FnMut() -> f64 {
    let mut state = seed;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let uniform = f64::from(u32::try_from(state >> 33).unwrap()) / f64::from(1_u32 << 31);
        (-mean * (1.0 - uniform).ln()).min(1.0)
    }
}

/// Share of the looks of two minutes at which commands were free, and mean pressure.
fn governed(seed: u64, alone: f64, caused: f64) -> (f64, f64) {
    let mut law = Law::new(settings());
    let mut own = queueing(seed, alone);
    let mut pressures = Vec::new();
    let trace = follow_both(&mut law, 0, 120_000_000_000, |_, used_cpus| {
        let pressure = (own() + caused * used_cpus / 4.0).min(1.0);
        pressures.push(pressure);
        pressure
    });
    let free = trace.iter().filter(|(_, allowance)| *allowance == Allowance::Free).count();
    let mean = pressures.iter().sum::<f64>() / f64::from(u32::try_from(pressures.len()).unwrap());
    (f64::from(u32::try_from(free).unwrap()) / f64::from(u32::try_from(trace.len()).unwrap()), mean)
}

/// The same, on average over some seeds.
fn governed_on_average(alone: f64, caused: f64) -> (f64, f64) {
    let all: Vec<_> = (1..=20).map(|seed| governed(seed, alone, caused)).collect();
    let mean = |of: fn(&(f64, f64)) -> f64| all.iter().map(of).sum::<f64>() / 20.0;
    (mean(|one| one.0), mean(|one| one.1))
}

#[test]
fn a_service_that_queues_by_itself_costs_the_commands_little() {
    for alone in [0.02, 0.05, 0.1, 0.2, 0.3, 0.4] {
        let (free, _) = governed_on_average(alone, 0.0);
        assert!(free > 0.85, "{alone} alone: free {free:.2} of the time");
    }
}

#[test]
fn commands_that_make_it_wait_are_held_back_beside_its_own_queue() {
    for alone in [0.02, 0.05, 0.1, 0.2, 0.3] {
        let (free, mean) = governed_on_average(alone, 0.6);
        assert!(free < 0.1, "{alone} alone: free {free:.2} of the time");
        assert!(mean < alone + 0.2, "{alone} alone: waits {mean:.2}, ungoverned {:.2}", alone + 0.6);
    }
}

#[test]
fn a_short_calm_releases_nothing() {
    let mut law = experienced();
    follow(&mut law, KNOWN_NS, KNOWN_NS + TICK_NS, |_| 0.9);
    let held = law.allowance();
    assert_eq!(held, Allowance::Limited(2.0));
    // 0.8 s of calm, then a little, again and again: never the whole second that is asked for.
    let trace = follow(&mut law, KNOWN_NS + TICK_NS, 400 * TICK_NS, |now_ns| {
        if (now_ns / TICK_NS).is_multiple_of(9) { 0.3 } else { 0.0 }
    });
    assert!(trace.iter().all(|(_, allowance)| *allowance == held));
}

#[test]
fn a_parked_group_blinks_when_its_time_is_over() {
    let mut law = Law::new(settings());
    let trace = follow(&mut law, 0, 40 * 1_000_000_000, |_| 1.0);
    let spells = parked_spells(&trace);
    assert_eq!(spells.len(), 4, "three blinks in 40 s: {spells:?}");
    let blinks =
        trace.windows(2).filter(|pair| pair[0].1 != Allowance::Parked && pair[1].1 == Allowance::Parked);
    assert_eq!(blinks.count(), 3);
}

prop_compose! {
    fn any_settings()(
        cpus in 1.0_f64..64.0,
        high in 0.02_f64..0.9,
        low_share in 0.05_f64..1.0,
        calm_ms in 0_u64..3000,
        factor in 1_u64..20,
        park_ms in 200_u64..20_000,
        blink_ms in 1_u64..200,
        smallest_cpus in 0.01_f64..1.0,
        trial_ms in 100_u64..1000,
        interval_ms in 1000_u64..60_000,
    ) -> Settings {
        Settings {
            cpus,
            high,
            low: high * low_share,
            calm_ns: calm_ms * 1_000_000,
            calm_limit_ns: calm_ms * factor * 1_000_000,
            tick_ns: TICK_NS,
            smallest_cpus,
            park_limit_ns: park_ms * 1_000_000,
            blink_ns: blink_ms * 1_000_000,
            trial_ns: trial_ms * 1_000_000,
            trial_interval_ns: interval_ms * 1_000_000,
            doubt_ns: trial_ms * 4_000_000,
        }
    }
}

fn trace_of(pressures: &[f64]) -> impl Fn(u64) -> f64 + '_ {
    // Each level holds for 0.7 s, no multiple of a tick.
    move |now_ns| pressures[usize::try_from(now_ns / 700_000_000).unwrap() % pressures.len()]
}

proptest! {
    #[test]
    fn it_is_never_stuck_when_the_pressure_is_gone(
        settings in any_settings(),
        pressures in prop::collection::vec(0.0_f64..=1.0, 1..60),
    ) {
        let mut law = Law::new(settings);
        let end_ns = 700_000_000 * pressures.len() as u64;
        let last_ns = follow(&mut law, 0, end_ns, trace_of(&pressures)).last().unwrap().0;
        let limit_ns = last_ns + settings.release_limit_ns() + TICK_NS;
        let trace = follow(&mut law, last_ns + 1, limit_ns + 1, |_| 0.0);
        prop_assert_eq!(trace.last().unwrap().1, Allowance::Free);
    }

    #[test]
    fn nothing_is_parked_for_longer_than_the_bound(
        settings in any_settings(),
        pressures in prop::collection::vec(0.0_f64..=1.0, 1..90),
    ) {
        let mut law = Law::new(settings);
        let trace = follow(&mut law, 0, 60_000_000_000, trace_of(&pressures));
        let longest = parked_spells(&trace).into_iter().max().unwrap_or(0);
        prop_assert!(longest <= settings.park_limit_ns + TICK_NS, "{} ns", longest);
    }

    #[test]
    fn a_quota_is_never_below_the_smallest_nor_above_the_host(
        settings in any_settings(),
        pressures in prop::collection::vec(0.0_f64..=1.0, 1..90),
    ) {
        let mut law = Law::new(settings);
        for (_, allowance) in follow(&mut law, 0, 60_000_000_000, trace_of(&pressures)) {
            if let Allowance::Limited(cpus) = allowance {
                prop_assert!(cpus >= settings.smallest_cpus && cpus <= settings.cpus);
            }
        }
    }

    #[test]
    fn under_lasting_pressure_the_allowance_never_grows_but_in_blinks(
        settings in any_settings(), pressure in 0.91_f64..=1.0,
    ) {
        let mut law = Law::new(settings);
        let mut before = f64::INFINITY;
        for (_, allowance) in follow(&mut law, 0, 30_000_000_000, |_| pressure) {
            let now = match allowance {
                Allowance::Free => f64::INFINITY,
                Allowance::Limited(cpus) => cpus,
                Allowance::Parked => 0.0,
            };
            prop_assert!(now <= before || now <= settings.smallest_cpus);
            before = now;
        }
    }
}

/// What the guide says of the numbers is what they are.
#[test]
fn the_guide_names_the_defaults() {
    let guide = include_str!("../../../../docs/guides/best-effort.md").replace('\n', " ");
    let settings = settings();
    let seconds = |nanos: u64| nanos / 1_000_000_000;
    let milliseconds = |nanos: u64| nanos / 1_000_000;
    for words in [
        format!("waiting at least {:.0} % of the time", settings.high * 100.0),
        format!("waiting less than {:.0} % for", settings.low * 100.0),
        format!("again each {} ms", milliseconds(settings.tick_ns)),
        format!("below {} CPUs", settings.smallest_cpus),
        format!("parked for {} s", seconds(settings.park_limit_ns)),
        format!("let run for {} ms", milliseconds(settings.blink_ns)),
        format!("within {} s of a release", seconds(settings.calm_limit_ns)),
        format!("less than {:.2} CPUs", settings.smallest_cpus * NEGLIGIBLE),
        format!("parked for {} ms, to see", milliseconds(settings.trial_ns)),
        format!("since {} s ({} s while", seconds(settings.trial_interval_ns), seconds(settings.doubt_ns)),
    ] {
        assert!(guide.contains(&words), "the guide lacks `{words}`");
    }
    assert_eq!(settings.calm_ns, 1_000_000_000, "`for one second`");
}

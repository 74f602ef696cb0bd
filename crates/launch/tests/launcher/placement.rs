//! Where and as whom runs execute.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;

use steelyard_model::{Isolation, Metric, Reply, Request, RunStatus, SandboxSpec, SchedulingPolicy};

use super::Case;
use super::client::{Serve, launcher, spec, text, time_scale};
use super::layout::Layout;

pub(crate) const CASES: &[Case] = &[
    ("place::cpus_are_set", cpus_are_set),
    ("place::memory_is_bound", memory_is_bound),
    ("place::addresses_can_be_fixed", addresses_can_be_fixed),
    ("place::scheduling_classes", scheduling_classes),
    ("place::sandboxed_and_bare_runs_alternate", sandboxed_and_bare_runs_alternate),
    ("place::an_ordinary_user_gets_what_is_left", an_ordinary_user_gets_what_is_left),
];

fn cpus_are_set(layout: Layout) {
    let mut spec = spec(&["status"]);
    spec.placement.cpus = Some(vec![0]);
    let mut serve = Serve::start(layout);
    let outcome = serve.run(&spec);
    assert!(text(&outcome).contains("Cpus_allowed_list:\t0\n"), "{}", text(&outcome));
    spec.placement.cpus = None;
    let all = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = all.lines().find(|line| line.starts_with("Cpus_allowed_list")).unwrap();
    assert!(text(&serve.run(&spec)).contains(line));
}

fn memory_is_bound(layout: Layout) {
    // Without this file the kernel knows no memory policies, and one node is what was asked for.
    let knows_policies = std::path::Path::new("/proc/self/numa_maps").exists();
    let mut spec = spec(&[]);
    spec.command = vec!["/bin/sh".into(), "-c".into(), "cat /proc/self/numa_maps".into()];
    spec.placement.memory_nodes = Some(vec![0]);
    let mut serve = Serve::start(layout);
    if knows_policies {
        let bound = serve.run(&spec);
        assert!(text(&bound).lines().any(|line| line.contains(" bind:0 ")), "{}", text(&bound));
        spec.placement.memory_nodes = None;
        let free = serve.run(&spec);
        assert!(!text(&free).contains("bind:"), "{}", text(&free));
    }
    spec.placement.memory_nodes = Some(vec![63]);
    serve.send(&Request::Prepare { spec: Box::new(spec) });
    // A control group refuses the node at once, without one the run fails: both name it.
    let refusal = if let Reply::Error { message, .. } = serve.read() {
        message
    } else {
        serve.send(&Request::Go);
        serve.outcomes().remove(0).message.unwrap_or_default()
    };
    assert!(refusal.contains("63"), "{refusal}");
}

fn addresses_can_be_fixed(layout: Layout) {
    let mut spec = spec(&["address"]);
    spec.iterations = 3;
    spec.placement.randomise_addresses = Some(false);
    let mut serve = Serve::start(layout);
    let fixed = serve.batch(&spec);
    assert!(fixed.iter().all(|outcome| text(outcome) == text(&fixed[0])));
    spec.placement.randomise_addresses = Some(true);
    let varied = serve.batch(&spec);
    assert!(varied.iter().any(|outcome| text(outcome) != text(&varied[0])));
}

fn scheduling_classes(layout: Layout) {
    let mut serve = Serve::start(layout);
    for policy in [SchedulingPolicy::Batch, SchedulingPolicy::Idle, SchedulingPolicy::Fifo { priority: 1 }] {
        let mut spec = spec(&["exit", "0"]);
        spec.placement.policy = policy;
        let outcome = serve.run(&spec);
        assert_eq!(outcome.status, RunStatus::Completed, "{policy:?}: {:?}", outcome.message);
    }
}

fn sandboxed_and_bare_runs_alternate(layout: Layout) {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let mut serve = Serve::start(layout);
    let mut sandboxed = spec(&[]);
    sandboxed.command = vec!["sh".into(), "-c".into(), "id -u; echo $$; pwd".into()];
    sandboxed.isolation = Isolation::Sandbox(SandboxSpec::default());
    sandboxed.iterations = 3;
    sandboxed.limits.process_count = Some(16);
    sandboxed.limits.memory_bytes = Some(64 << 20);
    let mut bare = sandboxed.clone();
    bare.isolation = Isolation::Bare;
    for _ in 0..2 {
        for outcome in serve.batch(&sandboxed) {
            assert_eq!(outcome.status, RunStatus::Completed, "{outcome:?}");
            let lines: Vec<&str> = text(&outcome).lines().collect();
            assert!(lines[0].parse::<u32>().unwrap() >= 60_000, "{lines:?}");
            // Ids count from the pool's first process.
            assert!(lines[1].parse::<u32>().unwrap() < 1000, "{lines:?}");
            assert_eq!(lines[2], "/box");
            assert_eq!(outcome.mechanism.isolation, "sandbox");
            assert!(outcome.value(Metric::WallNs).is_some());
        }
        for outcome in serve.batch(&bare) {
            assert_eq!(outcome.status, RunStatus::Completed, "{outcome:?}");
            assert!(text(&outcome).starts_with("0\n"), "{}", text(&outcome));
        }
    }
}

/// No groups, no rights: less is known, and what is missing says so.
fn an_ordinary_user_gets_what_is_left(layout: Layout) {
    if !nix::unistd::geteuid().is_root() || layout != Layout::Whole {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let copy = folder.path().join("launcher");
    std::fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
    let mut command = launcher(layout, "serve");
    let mut as_user = std::process::Command::new(&copy);
    as_user.arg("serve").uid(65534).gid(65534).current_dir("/");
    as_user.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let (name, value) = layout.role();
    as_user.env(name, value);
    std::mem::swap(&mut command, &mut as_user);
    let mut serve = Serve::from(command);
    assert_eq!(serve.hello.cgroup, "none");
    let mut spec = spec(&["burn", "20"]);
    spec.command[0] = copy.to_string_lossy().into_owned();
    let outcome = serve.run(&spec);
    assert_eq!(outcome.status, RunStatus::Completed, "{outcome:?}");
    let used = outcome.value(Metric::CpuNs).unwrap();
    let most = 20_000_000 + 20_000_000 * u64::from(time_scale());
    assert!((20_000_000..most).contains(&used), "{used}");
    assert!(!outcome.mechanism.degraded.is_empty());
    assert!(outcome.quantities[&Metric::PeakMemoryBytes].missing.is_some());
    spec.command = vec!["/bin/sh".into(), "-c".into(), "sleep 50 & exit 0".into()];
    let outcome = serve.run(&spec);
    assert!(outcome.flags.contains(&steelyard_model::Flag::LeftProcesses), "{outcome:?}");
}

//! How runs end.

use steelyard_model::{Flag, RunStatus};

use super::Case;
use super::client::{Serve, execute, is_alive, once, spec, text, time_scale};
use super::layout::Layout;

pub(crate) const CASES: &[Case] = &[
    ("status::completed", completed),
    ("status::nonzero_exit", nonzero_exit),
    ("status::signalled", signalled),
    ("status::stopped_is_flagged", stopped_is_flagged),
    ("status::a_daemon_is_ended_and_flagged", a_daemon_is_ended),
    ("status::exec_failures_are_exact", exec_failures_are_exact),
    ("status::a_missing_directory_is_named", a_missing_directory_is_named),
    ("status::exit_codes_of_once", exit_codes_of_once),
];

fn completed(layout: Layout) {
    let outcome = execute(layout, &spec(&["exit", "0"]));
    assert_eq!((outcome.status, outcome.exit_code), (RunStatus::Completed, Some(0)));
    assert_eq!(outcome.mechanism.cgroup, layout.name());
    assert!(!outcome.flags.contains(&Flag::LeftProcesses));
}

fn nonzero_exit(layout: Layout) {
    let outcome = execute(layout, &spec(&["exit", "7"]));
    assert_eq!((outcome.status, outcome.exit_code), (RunStatus::NonzeroExit, Some(7)));
}

fn signalled(layout: Layout) {
    let outcome = execute(layout, &spec(&["signal", "15"]));
    assert_eq!((outcome.status, outcome.signal), (RunStatus::Signalled, Some(15)));
    assert_eq!(outcome.exit_code, None);
}

fn stopped_is_flagged(layout: Layout) {
    let mut spec = spec(&["signal", "19"]);
    spec.limits.wall_time_ns = Some(200_000_000 * u64::from(time_scale()));
    for source in [None, Some(steelyard_model::Source::Ptrace)] {
        spec.stamp_source = source;
        let outcome = execute(layout, &spec);
        assert_eq!(outcome.status, RunStatus::WallTimeout, "{source:?}");
        assert!(outcome.flags.contains(&Flag::Stopped), "{source:?}: {:?}", outcome.flags);
    }
}

fn a_daemon_is_ended(layout: Layout) {
    let outcome = execute(layout, &spec(&["daemon"]));
    assert_eq!(outcome.status, RunStatus::Completed);
    assert!(outcome.flags.contains(&Flag::LeftProcesses), "{:?}", outcome.flags);
    let daemon: u32 = text(&outcome).trim().parse().unwrap();
    assert!(!is_alive(daemon));
}

fn exec_failures_are_exact(layout: Layout) {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str, mode: u32| {
        use std::os::unix::fs::PermissionsExt;
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path.to_string_lossy().into_owned()
    };
    let mut serve = Serve::start(layout);
    for (program, expected) in [
        ("/no/such/program".to_owned(), "ENOENT"),
        ("no-such-program".to_owned(), "not found in `PATH`"),
        (write("data", "x", 0o644), "EACCES"),
        (write("script", "#!/no/such/interpreter\n", 0o755), "interpreter or dynamic loader"),
        (write("nonsense", "no magic", 0o755), "ENOEXEC"),
        ("/".to_owned(), "EACCES"),
    ] {
        let mut spec = spec(&[]);
        spec.command = vec![program.clone()];
        let outcome = serve.run(&spec);
        let message = outcome.message.unwrap_or_default();
        assert_eq!(outcome.status, RunStatus::LauncherFailed, "{program}");
        assert!(message.contains(&program) && message.contains(expected), "{program}: {message}");
    }
    // The launcher lives on.
    assert_eq!(serve.run(&spec(&["exit", "0"])).status, RunStatus::Completed);
}

fn a_missing_directory_is_named(layout: Layout) {
    let mut spec = spec(&["exit", "0"]);
    spec.working_directory = Some("/no/such/directory".into());
    let outcome = execute(layout, &spec);
    assert_eq!(outcome.status, RunStatus::LauncherFailed);
    assert!(outcome.message.unwrap().contains("/no/such/directory"));
    assert!(outcome.start_ns.is_none());
}

fn exit_codes_of_once(layout: Layout) {
    let document = |command: &[&str]| {
        let mut spec = spec(&[]);
        spec.command = command.iter().map(|word| (*word).to_owned()).collect();
        serde_json::to_string(&spec).unwrap()
    };
    for (text, code) in [
        (document(&["/bin/sh", "-c", "exit 3"]), 0),
        (document(&["/no/such/program"]), 127),
        (document(&["/"]), 126),
        ("{}".to_owned(), 125),
    ] {
        let output = once(layout, &text);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{text}: {errors}");
        assert_eq!(errors.is_empty(), code != 125, "{errors}");
        let lines = String::from_utf8_lossy(&output.stdout).lines().count();
        assert_eq!(lines, usize::from(code != 125));
    }
}

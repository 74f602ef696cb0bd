//! Requests that cannot be served are answered, and the launcher lives on.

use steelyard_model::{Reply, Request, RunStatus, SchedulingPolicy};

use super::Case;
use super::client::{Serve, spec};
use super::layout::Layout;

pub(crate) const CASES: &[Case] = &[
    ("error::bad_lines_are_told_apart", bad_lines_are_told_apart),
    ("error::bad_specifications_name_the_field", bad_specifications_name_the_field),
    ("error::ping_is_answered_any_time", ping_is_answered_any_time),
];

fn assert_error(serve: &mut Serve, expected_code: &str, expected_text: &str) {
    match serve.read() {
        Reply::Error { code, message, hint } => {
            assert_eq!(code, expected_code, "{message}");
            assert!(message.contains(expected_text), "{message}");
            assert!(hint.is_some(), "{message}");
        }
        other => panic!("no error: {other:?}"),
    }
}

fn bad_lines_are_told_apart(layout: Layout) {
    let mut serve = Serve::start(layout);
    serve.send_raw("nonsense\n");
    assert_error(&mut serve, "bad_request", "request line");
    serve.send_raw("{\"request\":\"dance\"}\n\n");
    assert_error(&mut serve, "bad_request", "dance");
    serve.send(&Request::Go);
    assert_error(&mut serve, "bad_request", "prepare");
    serve.send(&Request::Cancel);
    assert_error(&mut serve, "bad_request", "no batch");
    assert_eq!(serve.run(&spec(&["exit", "0"])).status, RunStatus::Completed);
}

fn bad_specifications_name_the_field(layout: Layout) {
    let mut serve = Serve::start(layout);
    let mut refuse = |change: &dyn Fn(&mut steelyard_model::RunSpec), text: &str| {
        let mut spec = spec(&["exit", "0"]);
        change(&mut spec);
        serve.send(&Request::Prepare { spec: Box::new(spec) });
        assert_error(&mut serve, "bad_request", text);
    };
    refuse(&|spec| spec.counters = vec!["dreams".into()], "`dreams`; allowed: `task-clock`");
    refuse(&|spec| spec.iterations = 0, "iterations");
    refuse(
        &|spec| {
            spec.placement.policy = SchedulingPolicy::Fifo { priority: 1 };
            spec.limits.wall_time_ns = None;
        },
        "wall_time_ns",
    );
    refuse(
        &|spec| spec.standard_input = steelyard_model::InputStream::File { path: "/no/such/input".into() },
        "/no/such/input",
    );
    assert_eq!(serve.run(&spec(&["exit", "0"])).status, RunStatus::Completed);
}

fn ping_is_answered_any_time(layout: Layout) {
    let mut serve = Serve::start(layout);
    let pong = |serve: &mut Serve| {
        serve.send(&Request::Ping);
        let Reply::Pong { monotonic_ns, utc_ns } = serve.read() else { panic!("no pong") };
        assert!(monotonic_ns > 0 && utc_ns > monotonic_ns);
    };
    pong(&mut serve);
    serve.prepare(&spec(&["sleep", "300"]));
    pong(&mut serve);
    serve.send(&Request::Go);
    pong(&mut serve);
    assert_eq!(serve.outcomes()[0].status, RunStatus::Completed);
}

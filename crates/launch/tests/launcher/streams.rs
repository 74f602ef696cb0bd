//! What goes in and comes out.

use steelyard_model::{InputStream, Metric, OutputStream, Phase, RunStatus};

use super::Case;
use super::client::{Serve, execute, spec, text};
use super::layout::Layout;

pub(crate) const CASES: &[Case] = &[
    ("stream::capture_and_truncation", capture_and_truncation),
    ("stream::discarded_output_is_counted", discarded_output_is_counted),
    ("stream::a_file_is_appended_across_iterations", a_file_is_appended),
    ("stream::input_comes_from_a_file", input_comes_from_a_file),
    ("stream::own_metrics_are_read", own_metrics_are_read),
    ("stream::nothing_is_inherited", nothing_is_inherited),
];

fn capture_and_truncation(layout: Layout) {
    let mut spec = spec(&["print", "100000"]);
    spec.standard_output = OutputStream::Capture { limit_bytes: 10 };
    let stream = execute(layout, &spec).standard_output.unwrap();
    assert_eq!((stream.text.as_str(), stream.total_bytes, stream.truncated), ("xxxxxxxxxx", 100_000, true));
    spec.standard_output = OutputStream::Capture { limit_bytes: 100_000 };
    let stream = execute(layout, &spec).standard_output.unwrap();
    assert_eq!((stream.text.len(), stream.truncated), (100_000, false));
}

fn discarded_output_is_counted(layout: Layout) {
    let mut spec = spec(&["print", "200000"]);
    spec.standard_output = OutputStream::Discard;
    let outcome = execute(layout, &spec);
    assert_eq!(outcome.value(Metric::OutputBytes), Some(200_000));
    assert!(outcome.standard_output.is_none());
}

fn a_file_is_appended(layout: Layout) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("output");
    let mut spec = spec(&["print", "5"]);
    spec.standard_output = OutputStream::File { path: path.clone() };
    spec.iterations = 3;
    let outcomes = Serve::start(layout).batch(&spec);
    assert!(outcomes.iter().all(|outcome| outcome.value(Metric::OutputBytes) == Some(5)));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "x".repeat(15));
}

fn input_comes_from_a_file(layout: Layout) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("input");
    std::fs::write(&path, "hello").unwrap();
    let mut spec = spec(&["cat"]);
    assert_eq!(text(&execute(layout, &spec)), "");
    spec.standard_input = InputStream::File { path };
    spec.iterations = 2;
    // Opened again for each iteration: the second one reads it from the start.
    for outcome in Serve::start(layout).batch(&spec) {
        assert_eq!(text(&outcome), "hello");
    }
}

fn own_metrics_are_read(layout: Layout) {
    let mut spec = spec(&["say", "cpu 12 ns", "wall 1.5 s 2 warmup", "nonsense"]);
    spec.own_metrics = true;
    let outcome = execute(layout, &spec);
    assert_eq!(outcome.status, RunStatus::Completed);
    assert_eq!(outcome.own.len(), 2);
    assert_eq!((outcome.own[0].metric.as_str(), outcome.own[0].iteration), ("cpu", 1));
    assert_eq!(outcome.own[1].phase, Phase::Warmup);
    assert!(outcome.message.unwrap().contains("1 lines"));
}

fn nothing_is_inherited(layout: Layout) {
    let mut spec = spec(&["environment"]);
    spec.environment.insert("GREETING".into(), "a=b c".into());
    let mut serve = Serve::start(layout);
    assert_eq!(text(&serve.run(&spec)), "GREETING=a=b c\n");
    spec.command = super::programs::command(&["descriptors"]);
    assert_eq!(text(&serve.run(&spec)), "[0, 1, 2]\n");
    spec.own_metrics = true;
    assert_eq!(text(&serve.run(&spec)), "[0, 1, 2, 3]\n");
    spec.command = super::programs::command(&["status"]);
    let outcome = serve.run(&spec);
    for line in text(&outcome).lines().filter(|line| line.starts_with("SigBlk") || line.starts_with("SigIgn"))
    {
        // The runtime of this very program ignores SIGPIPE (bit 12) by itself.
        let mask = u64::from_str_radix(line.split_ascii_whitespace().nth(1).unwrap(), 16).unwrap();
        assert_eq!(mask & !(1 << 12), 0, "{line}");
    }
}

use serde_json::{Value, json};

use super::*;

fn plan() -> Value {
    json!({
        "format": "steelyard/trial/1", "seed": 7, "cpus": [0], "client_cpus": [0],
        "service": {"kind": "pool", "threads": 4, "work_iterations": 0, "work_us": 2000,
                    "long_share": 0.02, "long_factor": 10.0},
        "client": {"rate_per_s": 1000.0, "arrivals": "poisson", "connections": 4, "closed_loop": 0},
        "best_effort": {"kind": "spin", "jobs": 2, "threads": 1},
        "phases": {"warm_up_ms": 100, "baseline_ms": 200, "best_effort_ms": 300, "recovery_ms": 400,
                   "drain_limit_ms": 1000},
        "policy": {"name": "idle", "best_effort_class": "idle", "service_nice": null},
        "groups": null, "groups_version": 1,
    })
}

fn with(pointer: &str, value: Value) -> Result<Plan, LoadError> {
    let mut plan = plan();
    let (object, key) = pointer.rsplit_once('/').unwrap();
    plan.pointer_mut(object).unwrap().as_object_mut().unwrap().insert(key.to_owned(), value);
    Plan::parse(&plan.to_string())
}

fn problem(pointer: &str, value: Value) -> String {
    with(pointer, value).unwrap_err().to_string()
}

#[test]
fn a_plan_is_read() {
    let plan = Plan::parse(&plan().to_string()).unwrap();
    assert_eq!(plan.phases.load_ms(), 1000);
    assert_eq!(plan.policy.best_effort.class, Some(Class::Idle));
    assert_eq!(plan.policy.service, Side::default());
    assert!(!plan.has_own_client_cpus());
    assert_eq!((plan.seed, plan.groups_version), (7, 1));
}

#[test]
fn a_command_is_a_service_without_a_client() {
    let mut plan = plan();
    plan["service"] = json!({"kind": "command", "command": ["ask", "--twice"]});
    plan["client"] = json!({"closed_loop": 1});
    let read = Plan::parse(&plan.to_string()).unwrap();
    assert_eq!((read.service.kind, read.service.command.len()), (ServiceKind::Command, 2));
    plan["client"]["rate_per_s"] = json!(5);
    let found = Plan::parse(&plan.to_string()).unwrap_err().to_string();
    assert!(found.contains("`client.rate_per_s` is unknown; known here: closed_loop"), "{found}");
    plan["service"] = json!({"kind": "command"});
    let found = Plan::parse(&plan.to_string()).unwrap_err().to_string();
    assert!(found.contains("`service.command` is missing; allowed: a command"), "{found}");
}

#[test]
fn what_is_wrong_is_named_with_what_is_allowed() {
    let cases = [
        (
            "/format",
            json!("steelyard/trial/9"),
            "`format` is `steelyard/trial/9`; allowed: `steelyard/trial/1`",
        ),
        ("/cpus", json!([0, 7000]), "`cpus` names CPU 7000; allowed here: "),
        ("/cpus", json!("0"), "`cpus` is `\"0\"`; allowed: a list of numbers of CPUs"),
        ("/speed", json!(1), "`speed` is unknown; known here: format, seed"),
        ("/service/kind", json!("tree"), "`service.kind` is `\"tree\"`; allowed: pool, web"),
        ("/service/threads", json!(0), "`service.threads` is `0`; allowed: whole numbers from 1 to 4096"),
        ("/service/threads", json!(1.5), "`service.threads` is `1.5`; allowed: whole numbers"),
        ("/service/work_us", json!(0), "are both 0"),
        ("/service/long_share", json!(2), "`service.long_share` is `2`; allowed: numbers from 0 to 1"),
        ("/client/rate_per_s", json!(null), "`client.rate_per_s` is missing"),
        ("/phases/baseline_ms", json!(86_400_000), "allowed: 50000000"),
        ("/client/arrivals", json!("bursts"), "allowed: poisson, uniform"),
        ("/best_effort/kind", json!(null), "`best_effort.kind` is missing; allowed: "),
        ("/phases/baseline_ms", json!(-1), "`phases.baseline_ms` is `-1`"),
        (
            "/policy/service_class",
            json!("rr"),
            "`policy.service_class` is `\"rr\"`; allowed: other, batch, idle, fifo",
        ),
        ("/policy/best_effort_class", json!("fifo"), "would stop the machine"),
        (
            "/policy/service_weight",
            json!(20_000),
            "`policy.service_weight` is `20000`; allowed: whole numbers from 1 to 10000",
        ),
        ("/policy/best_effort_cpu_idle", json!(2), "allowed: true, false, 1, 0"),
        ("/policy/scheduler", json!([]), "allowed: a command, as a list of words"),
        ("/policy/nice", json!(1), "`policy.nice` is unknown; known here: name"),
        ("/groups_version", json!(3), "`groups_version` is `3`; allowed: whole numbers from 1 to 2"),
    ];
    for (pointer, value, wanted) in cases {
        let found = problem(pointer, value);
        assert!(found.contains(wanted), "{pointer}: {found}");
    }
    assert!(Plan::parse("[]").unwrap_err().to_string().contains("allowed: an object"));
    assert!(Plan::parse("{").unwrap_err().to_string().contains("is not JSON"));
}

#[test]
fn a_damaged_plan_is_refused_or_read_and_never_more() {
    let text = plan().to_string();
    for place in (0..text.len()).step_by(3) {
        for other in ["", "9", "-1e999", "\"", "{", "null"] {
            crate::fuzzing::plan(&format!("{}{other}{}", &text[..place], &text[place + 1..]));
        }
    }
}

#[test]
fn whole_numbers_may_be_written_as_reals_and_commands_as_text() {
    assert_eq!(with("/seed", json!(6.0)).unwrap().seed, 6);
    let policy = with("/policy/scheduler", json!("program start")).unwrap().policy;
    assert_eq!(policy.scheduler, Some(vec!["program".to_owned(), "start".to_owned()]));
}

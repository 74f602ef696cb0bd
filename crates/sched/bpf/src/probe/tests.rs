use super::*;

fn host(files: &[(&str, &str)]) -> tempfile::TempDir {
    let host = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = host.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    host
}

/// The type information of a kernel of some version, with exceptions.
struct Kernel {
    version: (u32, u32),
    parameters: &'static [(&'static str, usize)],
    has_preemptible_rcu: bool,
}

const NEW: Kernel = Kernel { version: (7, 3), parameters: &[], has_preemptible_rcu: true };
const OLD: Kernel = Kernel { version: (6, 12), parameters: &[], has_preemptible_rcu: false };

/// As Linux has them: name, parameters, the first version that has it and the first that has it no longer.
const HISTORY: [(&str, usize, (u32, u32), (u32, u32)); 30] = [
    ("scx_bpf_dispatch", 4, (6, 12), (6, 17)),
    ("scx_bpf_dispatch_vtime", 5, (6, 12), (6, 17)),
    ("scx_bpf_consume", 1, (6, 12), (6, 17)),
    ("scx_bpf_dispatch_from_dsq", 4, (6, 12), (6, 17)),
    ("scx_bpf_dispatch_vtime_from_dsq", 4, (6, 12), (6, 17)),
    ("scx_bpf_dispatch_from_dsq_set_slice", 2, (6, 12), (6, 17)),
    ("scx_bpf_dispatch_from_dsq_set_vtime", 2, (6, 12), (6, 17)),
    ("scx_bpf_dsq_insert", 4, (6, 13), (9, 0)),
    ("scx_bpf_dsq_insert_vtime", 5, (6, 13), (9, 0)),
    ("scx_bpf_dsq_move_to_local", 1, (6, 13), (9, 0)),
    ("scx_bpf_dsq_move", 4, (6, 13), (9, 0)),
    ("scx_bpf_dsq_move_vtime", 4, (6, 13), (9, 0)),
    ("scx_bpf_dsq_move_set_slice", 2, (6, 13), (9, 0)),
    ("scx_bpf_dsq_move_set_vtime", 2, (6, 13), (9, 0)),
    ("scx_bpf_dsq_insert___v2", 4, (6, 19), (9, 0)),
    ("__scx_bpf_dsq_insert_vtime", 2, (6, 19), (9, 0)),
    ("scx_bpf_reenqueue_local___v2", 0, (6, 19), (9, 0)),
    ("scx_bpf_create_dsq", 2, (6, 12), (9, 0)),
    ("scx_bpf_dsq_nr_queued", 1, (6, 12), (9, 0)),
    ("scx_bpf_kick_cpu", 2, (6, 12), (9, 0)),
    ("scx_bpf_pick_idle_cpu", 2, (6, 12), (9, 0)),
    ("scx_bpf_test_and_clear_cpu_idle", 1, (6, 12), (9, 0)),
    ("scx_bpf_pick_idle_cpu_node", 3, (6, 15), (9, 0)),
    ("scx_bpf_cpu_node", 1, (6, 15), (9, 0)),
    ("scx_bpf_select_cpu_and", 5, (6, 16), (9, 0)),
    ("__scx_bpf_select_cpu_and", 3, (6, 19), (9, 0)),
    ("scx_bpf_reenqueue_local", 0, (6, 12), (9, 0)),
    ("scx_bpf_select_cpu_dfl", 4, (6, 12), (9, 0)),
    ("scx_bpf_task_cpu", 1, (6, 12), (9, 0)),
    ("bpf_iter_scx_dsq_new", 3, (6, 12), (9, 0)),
];

impl Types for Kernel {
    fn parameters(&self, function: &str) -> Option<usize> {
        if let Some((_, count)) = self.parameters.iter().find(|(name, _)| *name == function) {
            return Some(*count);
        }
        let is_there = |(name, _, first, end): &&(&str, usize, (u32, u32), (u32, u32))| {
            *name == function && (*first..*end).contains(&self.version)
        };
        HISTORY.iter().find(is_there).map(|(_, count, _, _)| *count)
    }

    fn has_member(&self, structure: &str, member: &str) -> bool {
        (structure, member) == ("mutex", "owner") || self.has_preemptible_rcu
    }

    fn enumerator(&self, _enumeration: &str, _name: &str) -> Option<u64> {
        (self.version >= (6, 14)).then_some(16)
    }
}

const ABLE: [(&str, &str); 3] = [
    ("proc/sys/kernel/osrelease", "6.18.15\n"),
    ("sys/kernel/sched_ext/state", "disabled\n"),
    ("sys/kernel/btf/vmlinux", ""),
];

#[test]
fn an_able_kernel_lacks_nothing() {
    let host = host(&ABLE);
    let probe = Probe::read(host.path(), Some(&NEW));
    assert!(probe.is_available() && probe.require().is_ok() && probe.require_free().is_ok());
    assert_eq!((probe.kernel.as_str(), probe.config.as_str(), probe.has_btf), ("6.18.15", "y", true));
}

#[test]
fn a_kernel_without_the_option_is_named_with_it() {
    let files = [
        ("proc/sys/kernel/osrelease", "6.12.1\n"),
        ("boot/config-6.12.1", "# CONFIG_SCHED_CLASS_EXT is not set\n"),
        ("sys/kernel/btf/vmlinux", ""),
    ];
    let probe = Probe::read(host(&files).path(), Some(&NEW));
    assert_eq!(probe.config, "n");
    let error = probe.require().unwrap_err();
    assert_eq!(error.exit_code(), 3);
    assert!(error.to_string().contains("6.12.1 is built without `CONFIG_SCHED_CLASS_EXT`"), "{error}");
    assert_eq!(probe.to_json()["available"], false);
}

#[test]
fn missing_type_information_is_one_of_the_reasons() {
    let probe = Probe::read(host(&ABLE[..2]).path(), Some(&NEW));
    assert_eq!(probe.reasons.len(), 1, "{:?}", probe.reasons);
    assert!(probe.reasons[0].contains("/sys/kernel/btf/vmlinux"));
}

#[test]
fn a_hidden_parameter_is_said_in_plain_words() {
    let broken = Kernel { parameters: &[("scx_bpf_create_dsq", 3)], ..NEW };
    let probe = Probe::read(host(&ABLE).path(), Some(&broken));
    assert_eq!(probe.reasons.len(), 1);
    assert!(probe.reasons[0].contains("`scx_bpf_create_dsq` 3 parameters instead of 2"));
}

#[test]
fn another_scheduler_is_named() {
    let mut files = ABLE.to_vec();
    files.push(("sys/kernel/sched_ext/root/ops", "simple\n"));
    let error = Probe::read(host(&files).path(), Some(&NEW)).require_free().unwrap_err();
    assert!(error.to_string().contains("simple"));
}

fn used(kernel: &Kernel, name: &str) -> Option<(bool, String)> {
    let probe = Probe::read(host(&ABLE).path(), Some(kernel));
    assert!(probe.is_available(), "{:?}", probe.reasons);
    let found = probe.features.into_iter().find(|feature| feature.name == name)?;
    Some((found.is_used, found.why))
}

#[test]
fn each_kernel_is_asked_for_the_newest_name_that_it_has() {
    for (version, names) in [
        ((6, 12), ["scx_bpf_dispatch", "scx_bpf_dispatch_vtime", "scx_bpf_consume"]),
        ((6, 14), ["scx_bpf_dsq_insert", "scx_bpf_dsq_insert_vtime", "scx_bpf_dsq_move_to_local"]),
        ((7, 0), ["scx_bpf_dsq_insert___v2", "__scx_bpf_dsq_insert_vtime", "scx_bpf_dsq_move_to_local"]),
    ] {
        let kernel = Kernel { version, ..NEW };
        for name in names {
            assert!(used(&kernel, name).is_some(), "{version:?} {name}");
        }
    }
    let (_, why) = used(&OLD, "scx_bpf_consume").unwrap();
    assert_eq!(why, "the kernel has no `scx_bpf_dsq_move_to_local`, which is there since 6.13");
    // A defect of the newest name does no harm where an older one is sound.
    let broken = Kernel { parameters: &[("scx_bpf_dsq_insert___v2", 5)], ..NEW };
    let (_, why) = used(&broken, "scx_bpf_dsq_insert").unwrap();
    assert_eq!(why, "the kernel's `scx_bpf_dsq_insert___v2` has not 4 parameters");
}

#[test]
fn what_a_kernel_lacks_is_said_with_what_follows() {
    let (is_used, why) = used(&OLD, "CONFIG_PREEMPT_RCU").unwrap();
    assert_eq!((is_used, why.contains("no moments are needed")), (false, true));
    assert!(used(&NEW, "CONFIG_PREEMPT_RCU").unwrap().0);
    assert!(used(&OLD, "SCX_OPS_ENQ_MIGRATION_DISABLED").unwrap().1.contains("older than 6.14"));
    let probe = Probe::read(host(&ABLE).path(), Some(&OLD));
    assert!(probe.to_text().contains("scx_bpf_consume"), "{}", probe.to_text());
    assert_eq!(probe.to_json()["features"].as_array().unwrap().len(), probe.features.len());
}

#[test]
fn idle_cpus_of_nodes_are_asked_for_where_all_that_takes_is_there() {
    let name = "SCX_OPS_BUILTIN_IDLE_PER_NODE";
    for (version, is_there) in [((6, 12), false), ((6, 15), false), ((6, 16), true), ((7, 3), true)] {
        let (is_used, why) = used(&Kernel { version, ..NEW }, name).unwrap();
        assert_eq!((is_used, why.contains("older than 6.16")), (is_there, !is_there), "{version:?}");
    }
    let broken = Kernel { parameters: &[("scx_bpf_pick_idle_cpu_node", 4)], ..NEW };
    assert!(!used(&broken, name).unwrap().0);
}

#[test]
fn a_function_under_none_of_its_names_is_named_with_all() {
    let kernel = Kernel { version: (9, 0), ..NEW };
    let probe = Probe::read(host(&ABLE).path(), Some(&kernel));
    let all = "no function `scx_bpf_dsq_move` or `scx_bpf_dispatch_from_dsq`";
    assert!(probe.reasons.iter().any(|reason| reason.contains(all)), "{:?}", probe.reasons);
}

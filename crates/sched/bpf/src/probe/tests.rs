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

fn usual(name: &str) -> Option<usize> {
    FUNCTIONS.iter().find(|(known, _)| *known == name).map(|(_, count)| *count)
}

const ABLE: [(&str, &str); 3] = [
    ("proc/sys/kernel/osrelease", "6.18.15\n"),
    ("sys/kernel/sched_ext/state", "disabled\n"),
    ("sys/kernel/btf/vmlinux", ""),
];

#[test]
fn an_able_kernel_lacks_nothing() {
    let host = host(&ABLE);
    let probe = Probe::read(host.path(), Some(&usual));
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
    let probe = Probe::read(host(&files).path(), Some(&usual));
    assert_eq!(probe.config, "n");
    let error = probe.require().unwrap_err();
    assert_eq!(error.exit_code(), 3);
    assert!(error.to_string().contains("6.12.1 is built without `CONFIG_SCHED_CLASS_EXT`"), "{error}");
    assert_eq!(probe.to_json()["available"], false);
}

#[test]
fn missing_type_information_is_one_of_the_reasons() {
    let probe = Probe::read(host(&ABLE[..2]).path(), Some(&|_| None));
    assert_eq!(probe.reasons.len(), 1, "{:?}", probe.reasons);
    assert!(probe.reasons[0].contains("/sys/kernel/btf/vmlinux"));
}

#[test]
fn a_hidden_parameter_is_said_in_plain_words() {
    let broken = |name: &str| if name == "scx_bpf_create_dsq" { Some(3) } else { usual(name) };
    let probe = Probe::read(host(&ABLE).path(), Some(&broken));
    assert_eq!(probe.reasons.len(), 1);
    assert!(probe.reasons[0].contains("`scx_bpf_create_dsq` 3 parameters instead of 2"));
}

#[test]
fn another_scheduler_is_named() {
    let mut files = ABLE.to_vec();
    files.push(("sys/kernel/sched_ext/root/ops", "simple\n"));
    let error = Probe::read(host(&files).path(), Some(&usual)).require_free().unwrap_err();
    assert!(error.to_string().contains("simple"));
}

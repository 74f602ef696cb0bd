//! `/etc`: what programs need to start, generated or shown by an allow-list.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use steelyard_model::NetworkView;

use super::error::{Context, SandboxError};
use super::mounts::{make_directory, show_entry};

/// Entries shown as they are. A name ending in `*` stands for all entries that start with it.
const SHOWN: [&str; 24] = [
    "alternatives",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "timezone",
    "locale.conf",
    "locale.alias",
    "java*",
    "ssl/certs",
    "ssl/openssl.cnf",
    "ca-certificates",
    "pki/tls/certs",
    "pki/ca-trust/extracted",
    "pki/java",
    "crypto-policies",
    "os-release",
    "debian_version",
    "mime.types",
    "protocols",
    "services",
    "python*",
    "perl",
    "fonts",
];

/// Makes `/etc` from the host's at `old`. Nothing that others cannot read on the host gets in.
pub(super) fn make(old: &Path, user_id: u32, network: NetworkView) -> Result<(), SandboxError> {
    let source = old.join("etc");
    let target = Path::new("/etc");
    make_directory(target)?;
    for pattern in SHOWN {
        match pattern.strip_suffix('*') {
            Some(prefix) => show_all(&source, target, prefix)?,
            None => show(&source, target, pattern)?,
        }
    }
    if network == NetworkView::Host {
        let name_servers = fs::read(source.join("resolv.conf")).unwrap_or_default();
        write("resolv.conf", &name_servers)?;
    }
    write("passwd", passwd(user_id).as_bytes())?;
    write("group", format!("root:x:0:\nsandbox:x:{user_id}:\nnogroup:x:65534:\n").as_bytes())?;
    write("hosts", b"127.0.0.1 localhost sandbox\n::1 localhost\n")?;
    write("hostname", b"sandbox\n")?;
    write("nsswitch.conf", b"passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n")
}

fn passwd(user_id: u32) -> String {
    format!(
        "root:x:0:0:root:/:/usr/sbin/nologin\n\
         sandbox:x:{user_id}:{user_id}:sandbox:/box:/bin/sh\n\
         nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n"
    )
}

fn show_all(source: &Path, target: &Path, prefix: &str) -> Result<(), SandboxError> {
    let Ok(entries) = fs::read_dir(source) else { return Ok(()) };
    for entry in entries.flatten() {
        if let Some(name) = entry.file_name().to_str()
            && name.starts_with(prefix)
        {
            show(source, target, name)?;
        }
    }
    Ok(())
}

fn show(source: &Path, target: &Path, name: &str) -> Result<(), SandboxError> {
    let (source, target) = (source.join(name), target.join(name));
    let Ok(kind) = fs::symlink_metadata(&source) else { return Ok(()) };
    if kind.mode() & 0o004 == 0 {
        return Ok(());
    }
    if let Some(parent) = target.parent() {
        make_directory(parent)?;
    }
    if kind.is_file() {
        // A copy instead of a mount: each mount lengthens every run's set-up.
        return fs::copy(&source, &target).map(drop).step(|| format!("copy `{}`", target.display()));
    }
    show_entry(&source, &target)
}

fn write(name: &str, content: &[u8]) -> Result<(), SandboxError> {
    let path = Path::new("/etc").join(name);
    fs::write(&path, content).step(|| format!("write `{}`", path.display()))
}

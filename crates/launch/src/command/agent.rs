//! `agent`: the first process of a virtual machine.
//!
//! Kernel parameters: `steelyard.cgroup=v2|v1|hybrid|none` chooses what is mounted (default v2),
//! `steelyard.exec=/path[,argument]...` executes another program instead of serving.

use std::fs::{self, File};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus};

use anyhow::Context;
use nix::mount::{MsFlags, mount};
use nix::sys::statfs::{FsType, statfs};
use nix::unistd::{chdir, chroot};
use steelyard_launch::LauncherOptions;
use steelyard_launch::guard::{Role, stand_guard};

use super::serve::serve;

const CGROUP_ROOT: &str = "/sys/fs/cgroup";
/// SOURCE: `include/uapi/linux/magic.h`.
const RAMFS_MAGIC: FsType = FsType(0x8584_58f6);
const TMPFS_MAGIC: FsType = FsType(0x0102_1994);

pub(crate) fn execute(device: &Path) -> anyhow::Result<i32> {
    anyhow::ensure!(
        std::process::id() == 1,
        "`agent` is the first process of a virtual machine; use `serve` inside a running system"
    );
    let result = live(device);
    if let Ok(Role::Launcher) = result {
        return Ok(0);
    }
    if let Err(error) = &result {
        super::complain(&format!("{error:#}"), None);
    }
    if std::process::id() != 1 {
        return result.map(|_| 0);
    }
    power_off()
}

fn live(device: &Path) -> anyhow::Result<Role> {
    leave_initial_root();
    mount_basics();
    let parameters = fs::read_to_string("/proc/cmdline").context("cannot read the kernel's parameters")?;
    mount_groups(parameter(&parameters, "steelyard.cgroup").unwrap_or("v2"))?;
    if let Some(line) = parameter(&parameters, "steelyard.exec") {
        execute_program(line)?;
        return Ok(Role::Guard { exit_code: 0 });
    }
    let line = open_serial(device)?;
    let role = stand_guard()?;
    if role == Role::Launcher {
        serve(LauncherOptions { is_guarded: true, worker: 0, tracepoints: None }, line.try_clone()?, &line)?;
    }
    Ok(role)
}

fn parameter<'a>(parameters: &'a str, name: &str) -> Option<&'a str> {
    parameters.split_ascii_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
}

/// The initial root of the kernel cannot be pivoted away from, as a sandbox does: stand on a mount
/// of it instead.
fn leave_initial_root() {
    let is_initial =
        statfs("/").is_ok_and(|about| [RAMFS_MAGIC, TMPFS_MAGIC].contains(&about.filesystem_type()));
    let place = "/.steelyard-root";
    if !is_initial || fs::create_dir_all(place).is_err() {
        return;
    }
    let none: Option<&str> = None;
    let moved = mount(Some("/"), place, none, MsFlags::MS_BIND, none)
        .and_then(|()| chdir(place))
        .and_then(|()| mount(Some("."), "/", none, MsFlags::MS_MOVE, none))
        .and_then(|()| chroot("."))
        .and_then(|()| chdir("/"));
    if let Err(errno) = moved {
        super::complain(&format!("cannot leave the initial root: {}", errno.desc()), None);
    }
}

fn mount_basics() {
    for (kind, place) in [
        ("proc", "/proc"),
        ("sysfs", "/sys"),
        ("devtmpfs", "/dev"),
        ("devpts", "/dev/pts"),
        ("tmpfs", "/dev/shm"),
        ("tmpfs", "/tmp"),
        ("tmpfs", "/run"),
    ] {
        // Some are there already, depending on the kernel; what is missing shows where it is needed.
        let _ = mount_at(kind, place, None);
    }
}

fn mount_at(kind: &str, place: &str, data: Option<&str>) -> anyhow::Result<()> {
    fs::create_dir_all(place).with_context(|| format!("cannot create `{place}`"))?;
    mount(Some(kind), place, Some(kind), MsFlags::empty(), data)
        .with_context(|| format!("cannot mount `{kind}` at `{place}`"))
}

fn mount_groups(layout: &str) -> anyhow::Result<()> {
    match layout {
        "none" => Ok(()),
        "v2" => mount_at("cgroup2", CGROUP_ROOT, None),
        "v1" => mount_version_1(),
        "hybrid" => {
            mount_version_1()?;
            mount_at("cgroup2", &format!("{CGROUP_ROOT}/unified"), None)
        }
        other => anyhow::bail!("`steelyard.cgroup` is `{other}`; allowed: v2, v1, hybrid, none"),
    }
}

fn mount_version_1() -> anyhow::Result<()> {
    mount_at("tmpfs", CGROUP_ROOT, None)?;
    let table = fs::read_to_string("/proc/cgroups").context("this kernel has no control groups")?;
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        // name, hierarchy, number of groups, enabled
        if let [name, _, _, "1"] = words[..] {
            // A kernel may know a controller in version 2 only.
            let _ = mount_at("cgroup", &format!("{CGROUP_ROOT}/{name}"), Some(name));
        }
    }
    Ok(())
}

fn execute_program(line: &str) -> anyhow::Result<()> {
    let mut words = line.split(',');
    let program = words.next().unwrap_or_default();
    let child = Command::new(program)
        .args(words)
        .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
        .spawn()
        .with_context(|| format!("cannot execute `{program}` of `steelyard.exec`"))?;
    let status = wait_as_first_process(child.id())?;
    let mut output = std::io::stdout();
    writeln!(output, "steelyard.exec: {status}")?;
    Ok(output.flush()?)
}

/// Waits for a child, and meanwhile for the orphans that only the first process can wait for.
fn wait_as_first_process(child: u32) -> std::io::Result<ExitStatus> {
    loop {
        let mut status = 0;
        // SAFETY: the pointer is valid.
        let ended = unsafe { libc::waitpid(-1, &raw mut status, 0) };
        if ended < 0 {
            return Err(std::io::Error::last_os_error());
        }
        if ended.cast_unsigned() == child {
            return Ok(ExitStatus::from_raw(status));
        }
    }
}

/// Opens the line without echo, line editing and translation of bytes.
fn open_serial(device: &Path) -> anyhow::Result<File> {
    let line = File::options()
        .read(true)
        .write(true)
        .open(device)
        .with_context(|| format!("cannot open the serial line `{}`", device.display()))?;
    let mut settings = std::mem::MaybeUninit::<libc::termios>::zeroed();
    // SAFETY: the pointer is valid; all zeroes is a valid value of these plain integers.
    let is_terminal = unsafe { libc::tcgetattr(line.as_raw_fd(), settings.as_mut_ptr()) } == 0;
    if is_terminal {
        // SAFETY: changes the structure only, which was filled above.
        unsafe { libc::cfmakeraw(settings.as_mut_ptr()) };
        // SAFETY: the structure is valid.
        unsafe { libc::tcsetattr(line.as_raw_fd(), libc::TCSANOW, settings.as_ptr()) };
    }
    Ok(line)
}

/// Ends the machine. Never returns where it works.
fn power_off() -> anyhow::Result<i32> {
    nix::unistd::sync();
    // A machine without ACPI cannot be switched off, but an emulator can be told to end at a reset.
    let how = if Path::new("/sys/firmware/acpi").exists() { libc::RB_POWER_OFF } else { libc::RB_AUTOBOOT };
    // SAFETY: ends the machine; everything was synchronised.
    unsafe { libc::reboot(how) };
    Err(std::io::Error::last_os_error()).context("cannot power off")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_found_by_their_whole_name() {
        let line = "console=ttyS0 steelyard.cgroup=v1 xsteelyard.exec=/no steelyard.exec=/bin/sh,-c,x\n";
        assert_eq!(parameter(line, "steelyard.cgroup"), Some("v1"));
        assert_eq!(parameter(line, "steelyard.exec"), Some("/bin/sh,-c,x"));
        assert_eq!(parameter(line, "steelyard"), None);
    }

    #[test]
    fn an_unknown_layout_is_refused_with_the_allowed_ones() {
        assert!(mount_groups("v3").unwrap_err().to_string().contains("hybrid"));
    }

    #[test]
    fn only_a_first_process_is_an_agent() {
        assert!(execute(Path::new("/dev/null")).unwrap_err().to_string().contains("`serve`"));
    }
}

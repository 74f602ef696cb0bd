use std::fmt;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Where tracefs usually is, if it is mounted at all.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// `FSCONFIG_CMD_CREATE`.
const CREATE: libc::c_uint = 6;
/// `FSOPEN_CLOEXEC` and `FSMOUNT_CLOEXEC`.
const CLOSE_ON_EXEC: libc::c_uint = 1;

/// The kernel's numbers of the events at which a program begins and ends.
///
/// `sched_process_exec` comes when the program is loaded, right before its first instruction;
/// `sched_process_exit` right after its last one, since Linux 6.16 before its memory is given back;
/// `signal_generate` when the process, taken down, tells its parent so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tracepoints {
    pub(super) exec: u16,
    pub(super) exit: u16,
    pub(super) signal: u16,
    /// Where the record of an exit says that no thread is left; Linux 6.16 and later.
    pub(super) group_dead_offset: Option<u64>,
}

impl Tracepoints {
    /// Reads the numbers from tracefs, which need not be mounted: a mount that nobody sees is made
    /// and dropped.
    ///
    /// # Errors
    ///
    /// What keeps tracefs from being read: no such file system, or no right to it.
    pub fn find() -> io::Result<Self> {
        let mounted = PLACES.iter().map(Path::new).find(|place| place.join("events/sched").exists());
        if let Some(place) = mounted {
            return Self::read(place);
        }
        let unseen = mount_unseen()?;
        Self::read(&PathBuf::from(format!("/proc/self/fd/{}", unseen.as_raw_fd())))
    }

    fn read(place: &Path) -> io::Result<Self> {
        let number = |event: &str| -> io::Result<u16> {
            let text = fs::read_to_string(place.join("events").join(event).join("id"))?;
            text.trim().parse().map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
        };
        let format = fs::read_to_string(place.join("events/sched/sched_process_exit/format"))?;
        Ok(Self {
            exec: number("sched/sched_process_exec")?,
            exit: number("sched/sched_process_exit")?,
            signal: number("signal/signal_generate")?,
            group_dead_offset: field_offset(&format, "bool group_dead"),
        })
    }
}

/// `EXEC:EXIT:SIGNAL:OFFSET`, the last one `-` where the kernel has none: a launcher in a container is told
/// what it may not read there.
impl fmt::Display for Tracepoints {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}:{}:", self.exec, self.exit, self.signal)?;
        match self.group_dead_offset {
            Some(offset) => write!(out, "{offset}"),
            None => out.write_str("-"),
        }
    }
}

/// Text that is not `EXEC:EXIT:SIGNAL:OFFSET`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not `EXEC:EXIT:SIGNAL:OFFSET` as `steelyard-launch tracepoints` prints them")]
pub struct NoTracepoints;

impl FromStr for Tracepoints {
    type Err = NoTracepoints;

    fn from_str(text: &str) -> Result<Self, NoTracepoints> {
        let mut parts = text.split(':');
        let mut next = || parts.next().ok_or(NoTracepoints);
        let (exec, exit, signal, offset) = (next()?, next()?, next()?, next()?);
        let number = |text: &str| text.parse().map_err(|_| NoTracepoints);
        let group_dead_offset = match offset {
            "-" => None,
            offset => Some(offset.parse().map_err(|_| NoTracepoints)?),
        };
        let found =
            Self { exec: number(exec)?, exit: number(exit)?, signal: number(signal)?, group_dead_offset };
        if parts.next().is_some() { Err(NoTracepoints) } else { Ok(found) }
    }
}

/// Offset of a field in the description of an event: lines `field:TYPE NAME;\toffset:N;\tsize:N;...`.
fn field_offset(format: &str, field: &str) -> Option<u64> {
    let line = format.lines().find_map(|line| line.trim().strip_prefix("field:")?.strip_prefix(field))?;
    line.split(';').find_map(|part| part.trim().strip_prefix("offset:"))?.parse().ok()
}

fn mount_unseen() -> io::Result<OwnedFd> {
    // SAFETY: the name is a string of the program, ended by a zero.
    let context = owned(unsafe { libc::syscall(libc::SYS_fsopen, c"tracefs".as_ptr(), CLOSE_ON_EXEC) })?;
    let none = std::ptr::null::<libc::c_char>();
    // SAFETY: this command takes no key and no value.
    let created = unsafe { libc::syscall(libc::SYS_fsconfig, context.as_raw_fd(), CREATE, none, none, 0) };
    if created < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: no pointers are passed.
    owned(unsafe { libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), CLOSE_ON_EXEC, 0) })
}

fn owned(result: libc::c_long) -> io::Result<OwnedFd> {
    match i32::try_from(result) {
        // SAFETY: the kernel just gave this descriptor to us alone.
        Ok(descriptor) if descriptor >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(descriptor) }),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: &str = "name: sched_process_exit\nID: 369\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
        \tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n\
        \tfield:bool group_dead;\toffset:32;\tsize:1;\tsigned:0;\n";

    #[test]
    fn a_field_is_found_where_the_kernel_says_it_is() {
        assert_eq!(field_offset(FORMAT, "bool group_dead"), Some(32));
        assert_eq!(field_offset(FORMAT, "pid_t pid"), Some(24));
        assert_eq!(field_offset(FORMAT, "bool absent"), None);
        assert_eq!(field_offset("field:bool group_dead;", "bool group_dead"), None);
    }

    #[test]
    fn numbers_that_are_handed_on_arrive() {
        for text in ["365:369:199:32", "7:8:9:-"] {
            assert_eq!(text.parse::<Tracepoints>().map(|found| found.to_string()), Ok(text.to_owned()));
        }
        for text in
            ["", "365", "365:369", "365:369:32", "365:369:199:32:1", "a:b:c:-", "70000:1:2:-", "1:2:3:"]
        {
            assert_eq!(text.parse::<Tracepoints>(), Err(NoTracepoints), "{text}");
        }
    }
}

//! Who waits for the class to be attached: the process that started this one, or a service manager.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::os::unix::process::parent_id;

use crate::SchedulerError;

/// End with the process that started this one, whatever ends it.
///
/// # Errors
///
/// [`SchedulerError::Failed`] where it has ended already.
pub(crate) fn end_with(starter: Option<u32>) -> Result<(), SchedulerError> {
    let Some(starter) = starter else { return Ok(()) };
    set_death_signal(libc::SIGKILL);
    if parent_id() == starter {
        return Ok(());
    }
    let message = format!("process {starter}, which started this one, has ended");
    Err(SchedulerError::Failed { message, hint: "start it again".to_owned() })
}

/// From now on the end of the starter does not matter.
pub(crate) fn outlive() {
    set_death_signal(0);
}

fn set_death_signal(signal: libc::c_int) {
    // SAFETY: takes two numbers and touches no memory; it cannot fail for a signal that exists.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, signal) };
}

/// Say to the service manager that the class is attached, where one asks for it: `sd_notify(3)`.
pub(crate) fn tell_service_manager() {
    if let Some(name) = std::env::var_os("NOTIFY_SOCKET") {
        // A manager that does not listen ends this process when its time is over.
        let _ = tell(&name);
    }
}

fn tell(name: &OsStr) -> io::Result<()> {
    let address = match name.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(name)?,
    };
    UnixDatagram::unbound()?.send_to_addr(b"READY=1", &address).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_starter_that_is_gone_is_an_error() {
        assert!(end_with(None).is_ok());
        assert!(end_with(Some(parent_id())).is_ok());
        outlive();
        let error = end_with(Some(u32::MAX)).unwrap_err();
        outlive();
        assert_eq!(error.exit_code(), 4);
    }

    #[test]
    fn a_service_manager_is_told_at_a_path_and_at_an_abstract_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let name = format!("steelyard-test-{}", std::process::id());
        let by_path = UnixDatagram::bind(&path).unwrap();
        let by_name = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        tell(path.as_os_str()).unwrap();
        tell(OsStr::new(&format!("@{name}"))).unwrap();
        for socket in [by_path, by_name] {
            let mut buffer = [0; 16];
            let length = socket.recv(&mut buffer).unwrap();
            assert_eq!(&buffer[..length], b"READY=1");
        }
        assert!(tell(OsStr::new("/nowhere/notify")).is_err());
    }
}

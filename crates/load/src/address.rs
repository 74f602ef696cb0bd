//! Where a service listens: a unix socket or TCP on the loopback device.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixListener, UnixStream};

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv, send};

use crate::LoadError;

/// An address on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Address {
    /// A name in the kernel's table; nothing is left when its owner ends.
    Abstract(String),
    /// A file.
    File(String),
    /// TCP on the loopback device.
    Tcp(SocketAddr),
}

impl Address {
    /// Reads `unix:@NAME`, `unix:PATH` or `tcp:IP:PORT`.
    pub(crate) fn parse(option: &str, text: &str) -> Result<Self, LoadError> {
        let wrong = || {
            LoadError::usage(format!(
                "`{option}` is `{text}`; allowed: `unix:@NAME`, `unix:PATH`, `tcp:IP:PORT` of the loopback device, as in `tcp:127.0.0.1:8080`"
            ))
        };
        match text.split_once(':') {
            Some(("unix", place)) => match place.strip_prefix('@') {
                Some(name) if !name.is_empty() => Ok(Self::Abstract(name.to_owned())),
                None if !place.is_empty() => Ok(Self::File(place.to_owned())),
                _ => Err(wrong()),
            },
            Some(("tcp", place)) => match place.parse::<SocketAddr>() {
                Ok(address) if address.ip().is_loopback() => Ok(Self::Tcp(address)),
                _ => Err(wrong()),
            },
            _ => Err(wrong()),
        }
    }

    fn unix(&self) -> io::Result<UnixAddress> {
        match self {
            Self::Abstract(name) => UnixAddress::from_abstract_name(name),
            Self::File(path) => UnixAddress::from_pathname(path),
            Self::Tcp(_) => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    /// Connects.
    pub(crate) fn connect(&self) -> Result<Connection, LoadError> {
        let connect = || -> io::Result<OwnedFd> {
            match self {
                Self::Tcp(address) => {
                    let stream = TcpStream::connect(address)?;
                    stream.set_nodelay(true)?;
                    Ok(stream.into())
                }
                _ => Ok(UnixStream::connect_addr(&self.unix()?)?.into()),
            }
        };
        connect().map(Connection).map_err(|error| self.refused("connecting to", error))
    }

    /// Listens.
    pub(crate) fn listen(&self) -> Result<Listener, LoadError> {
        let listen = || -> io::Result<Listener> {
            match self {
                Self::Tcp(address) => Ok(Listener::Tcp(TcpListener::bind(address)?)),
                _ => Ok(Listener::Unix(UnixListener::bind_addr(&self.unix()?)?)),
            }
        };
        listen().map_err(|error| self.refused("listening on", error))
    }

    fn refused(&self, action: &str, error: io::Error) -> LoadError {
        // A guest or a network namespace begins with a loopback device that is down.
        let is_down = matches!(error.raw_os_error(), Some(libc::ENETUNREACH | libc::EADDRNOTAVAIL));
        if is_down && matches!(self, Self::Tcp(_)) {
            let message = format!("{action} `{self}` failed: {error}");
            return LoadError::capability(message, "`ip link set lo up` starts the loopback device");
        }
        LoadError::system(format!("{action} `{self}`"), error)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Abstract(name) => write!(formatter, "unix:@{name}"),
            Self::File(path) => write!(formatter, "unix:{path}"),
            Self::Tcp(address) => write!(formatter, "tcp:{address}"),
        }
    }
}

/// A socket that accepts.
#[derive(Debug)]
pub(crate) enum Listener {
    Unix(UnixListener),
    Tcp(TcpListener),
}

impl Listener {
    /// Waits for a connection.
    pub(crate) fn accept(&self) -> io::Result<Connection> {
        match self {
            Self::Unix(listener) => Ok(Connection(listener.accept()?.0.into())),
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nodelay(true)?;
                Ok(Connection(stream.into()))
            }
        }
    }

    /// Where it listens, with the port that the system chose.
    pub(crate) fn address(&self, asked: &Address) -> Address {
        match self {
            Self::Tcp(listener) => listener.local_addr().map_or_else(|_| asked.clone(), Address::Tcp),
            Self::Unix(_) => asked.clone(),
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(listener) => listener.as_fd(),
            Self::Tcp(listener) => listener.as_fd(),
        }
    }
}

/// A stream socket; several threads may use it.
#[derive(Debug)]
pub(crate) struct Connection(OwnedFd);

impl From<OwnedFd> for Connection {
    fn from(descriptor: OwnedFd) -> Self {
        Self(descriptor)
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Connection {
    /// Takes what is there; `None` if there is nothing yet, 0 at the end.
    pub(crate) fn receive(&self, bytes: &mut [u8]) -> io::Result<Option<usize>> {
        self.receive_with(bytes, MsgFlags::MSG_DONTWAIT)
    }

    /// Waits until something is there; `None` when a signal came, 0 at the end.
    pub(crate) fn wait_and_receive(&self, bytes: &mut [u8]) -> io::Result<Option<usize>> {
        self.receive_with(bytes, MsgFlags::empty())
    }

    fn receive_with(&self, bytes: &mut [u8], flags: MsgFlags) -> io::Result<Option<usize>> {
        match recv(self.0.as_raw_fd(), bytes, flags) {
            Ok(count) => Ok(Some(count)),
            Err(Errno::EAGAIN | Errno::EINTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Sends as much as the socket takes without waiting.
    #[inline]
    pub(crate) fn send_some(&self, bytes: &[u8]) -> io::Result<usize> {
        match send(self.0.as_raw_fd(), bytes, MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL) {
            Ok(count) => Ok(count),
            Err(Errno::EAGAIN | Errno::EINTR) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    /// Sends everything, waiting where the socket is full.
    pub(crate) fn send_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match send(self.0.as_raw_fd(), bytes, MsgFlags::MSG_NOSIGNAL) {
                Ok(count) => bytes = &bytes[count..],
                Err(Errno::EINTR) if !crate::signal::is_asked_to_end() => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Ends it for both sides; descriptors stay until they are dropped.
    pub(crate) fn close(&self) {
        // Refused only where the other side has ended it already.
        let _ = nix::sys::socket::shutdown(self.0.as_raw_fd(), nix::sys::socket::Shutdown::Both);
    }

    /// Sets how long a receiving call waits.
    pub(crate) fn set_patience_ms(&self, patience_ms: u32) -> Result<(), LoadError> {
        let patience =
            nix::sys::time::TimeVal::new(i64::from(patience_ms / 1000), i64::from(patience_ms % 1000 * 1000));
        nix::sys::socket::setsockopt(&self.0, nix::sys::socket::sockopt::ReceiveTimeout, &patience)
            .map_err(|error| LoadError::system("setting a time limit on a socket", error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_written() {
        for text in ["unix:@name", "unix:/tmp/name", "tcp:127.0.0.1:80", "tcp:[::1]:80"] {
            assert_eq!(Address::parse("--listen", text).unwrap().to_string(), text);
        }
        for text in ["", "unix:", "unix:@", "tcp:127.0.0.1", "tcp:10.0.0.1:80", "tcp:localhost:80", "udp:x"] {
            let error = Address::parse("--listen", text).unwrap_err().to_string();
            assert!(error.contains("allowed: `unix:@NAME`"), "{error}");
        }
    }

    #[test]
    fn bytes_arrive_over_both_kinds() {
        let name = format!("unix:@steelyard-load-test-{}", std::process::id());
        for text in [name.as_str(), "tcp:127.0.0.1:0"] {
            let asked = Address::parse("--listen", text).unwrap();
            let listener = asked.listen().unwrap();
            let near = listener.address(&asked).connect().unwrap();
            let far = listener.accept().unwrap();
            let mut buffer = [0; 8];
            assert_eq!(far.receive(&mut buffer).unwrap(), None);
            near.send_all(b"word").unwrap();
            far.set_patience_ms(5000).unwrap();
            assert_eq!(far.wait_and_receive(&mut buffer).unwrap(), Some(4));
            drop(near);
            assert_eq!(far.wait_and_receive(&mut buffer).unwrap(), Some(0));
        }
    }
}

//! The client's side of a TCP connection whose service is frozen.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsRawFd;

use nix::sys::socket::{setsockopt, sockopt};
use serde_json::{Value, json};

use crate::LoadError;

/// When an idle connection is probed, and given up if nobody answers [s].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KeepAlive {
    pub(super) idle_s: u32,
    pub(super) interval_s: u32,
    pub(super) count: u32,
}

impl KeepAlive {
    /// Expires within a third of the freeze, if nobody answers: idle + interval x count seconds.
    pub(super) fn within(freeze_s: u64) -> Self {
        let idle_s = u32::try_from(freeze_s / 6).unwrap_or(u32::MAX).clamp(1, 10);
        Self { idle_s, interval_s: 1, count: idle_s.clamp(1, 5) }
    }

    pub(super) const fn expires_s(self) -> u32 {
        self.idle_s + self.interval_s * self.count
    }

    pub(super) fn facts(self) -> Value {
        json!({
            "idle_s": self.idle_s, "interval_s": self.interval_s, "count": self.count,
            "expires_s": self.expires_s(),
        })
    }
}

/// A connection with keep-alive.
#[derive(Debug)]
pub(super) struct Link {
    stream: TcpStream,
    received: Vec<u8>,
}

fn failed(error: impl Into<std::io::Error>) -> LoadError {
    LoadError::system("talking to the frozen service", error)
}

impl Link {
    pub(super) fn connect(place: &str, keep_alive: KeepAlive) -> Result<Self, LoadError> {
        let place: SocketAddr =
            place.parse().map_err(|_| LoadError::Failed(format!("`{place}` is not an address")))?;
        let stream = TcpStream::connect(place).map_err(failed)?;
        setsockopt(&stream, sockopt::KeepAlive, &true).map_err(failed)?;
        setsockopt(&stream, sockopt::TcpKeepIdle, &keep_alive.idle_s).map_err(failed)?;
        setsockopt(&stream, sockopt::TcpKeepInterval, &keep_alive.interval_s).map_err(failed)?;
        setsockopt(&stream, sockopt::TcpKeepCount, &keep_alive.count).map_err(failed)?;
        stream.set_nonblocking(true).map_err(failed)?;
        Ok(Self { stream, received: Vec::new() })
    }

    /// Asks for some units of work.
    pub(super) fn ask(&mut self, units: u64) -> Result<(), LoadError> {
        self.stream.write_all(&units.to_le_bytes()).map_err(failed)
    }

    /// The answer, if it is there.
    pub(super) fn answer(&mut self) -> Result<Option<u64>, LoadError> {
        let mut buffer = [0; 8];
        match self.stream.read(&mut buffer) {
            Ok(0) => {
                return Err(LoadError::Failed("the frozen service has closed its connection".to_owned()));
            }
            Ok(count) => self.received.extend_from_slice(&buffer[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(error) => return Err(failed(error)),
        }
        let Some(bytes) = self.received.get(..8) else { return Ok(None) };
        let mut word = [0; 8];
        word.copy_from_slice(bytes);
        self.received.drain(..8);
        Ok(Some(u64::from_le_bytes(word)))
    }

    /// Whether the kernel holds the connection for established, and how long ago the other side was last
    /// heard of [ms]: a probe that was answered shows there.
    pub(super) fn state(&self) -> (bool, u32) {
        // SAFETY: an all-zero `tcp_info` is valid.
        let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
        let mut length = libc::socklen_t::try_from(size_of::<libc::tcp_info>()).unwrap_or(0);
        // SAFETY: `info` is valid for writing `length` bytes, and `length` for reading and writing.
        let answer = unsafe {
            libc::getsockopt(
                self.stream.as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                (&raw mut info).cast(),
                &raw mut length,
            )
        };
        // SOURCE: include/net/tcp_states.h: TCP_ESTABLISHED is 1.
        (answer == 0 && info.tcpi_state == 1, info.tcpi_last_ack_recv)
    }
}

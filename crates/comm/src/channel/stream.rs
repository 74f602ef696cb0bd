//! Byte streams of the kernel: pipes, unix and TCP sockets. A message is its frame and its payload, in one
//! `write` where the kernel takes it.

use std::io;
use std::net::TcpStream;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{MsgFlags, getsockopt, send, setsockopt, sockopt};

use super::{Channel, Parameters};
use crate::CommError;
use crate::message::{FRAME_BYTES, Frame, Message};
use crate::signal;

/// How to write without waiting.
#[derive(Debug)]
enum Eager {
    /// A second open file description of the pipe, which does not block.
    Pipe(OwnedFd),
    /// By a flag of the call.
    Socket,
}

/// A byte stream in each direction.
#[derive(Debug)]
pub(crate) struct StreamChannel {
    reader: OwnedFd,
    writer: OwnedFd,
    eager: Eager,
    sent: u32,
    received: u32,
}

impl StreamChannel {
    /// Two pipes.
    pub(crate) fn of_pipes(reader: OwnedFd, writer: OwnedFd) -> Result<Self, CommError> {
        let path = format!("/proc/self/fd/{}", writer.as_raw_fd());
        let flags = OFlag::O_WRONLY | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let eager = nix::fcntl::open(path.as_str(), flags, nix::sys::stat::Mode::empty())
            .map_err(|error| CommError::system(format!("opening `{path}`"), error))?;
        Ok(Self { reader, writer, eager: Eager::Pipe(eager), sent: 0, received: 0 })
    }

    /// One socket.
    pub(crate) fn of_socket(socket: OwnedFd) -> Result<Self, CommError> {
        let writer = socket.try_clone().map_err(|error| CommError::system("dup", error))?;
        Ok(Self { reader: socket, writer, eager: Eager::Socket, sent: 0, received: 0 })
    }

    pub(crate) fn of_unix(socket: UnixStream) -> Result<Self, CommError> {
        Self::of_socket(socket.into())
    }

    pub(crate) fn of_tcp(socket: TcpStream) -> Result<Self, CommError> {
        Self::of_socket(socket.into())
    }

    /// Writes all of it.
    #[inline]
    fn write_all(&self, mut bytes: &[u8]) -> Result<(), CommError> {
        while !bytes.is_empty() {
            match nix::unistd::write(&self.writer, bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) => survive(error, "sending")?,
            }
        }
        Ok(())
    }
}

impl Channel for StreamChannel {
    #[inline]
    fn send(&mut self, message: &mut Message, size: usize) -> Result<(), CommError> {
        message.set_frame(Frame { number: self.sent, size: length(size) });
        self.sent = self.sent.wrapping_add(1);
        self.write_all(message.framed(size))
    }

    #[inline]
    fn begin_send(&mut self, message: &mut Message, size: usize) -> Result<usize, CommError> {
        message.set_frame(Frame { number: self.sent, size: length(size) });
        self.sent = self.sent.wrapping_add(1);
        let bytes = message.framed(size);
        let answer = match &self.eager {
            Eager::Pipe(writer) => nix::unistd::write(writer, bytes),
            Eager::Socket => {
                let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
                send(self.writer.as_raw_fd(), bytes, flags)
            }
        };
        match answer {
            Ok(count) => Ok(count),
            Err(Errno::EAGAIN) => Ok(0),
            Err(error) => survive(error, "sending").map(|()| 0),
        }
    }

    #[inline]
    fn finish_send(&mut self, message: &mut Message, size: usize, done: usize) -> Result<(), CommError> {
        self.write_all(&message.framed(size)[done..])
    }

    #[inline]
    fn receive(&mut self, message: &mut Message, size: usize) -> Result<(), CommError> {
        let expected = Frame { number: self.received, size: length(size) };
        let bytes = message.framed(size);
        let mut done = 0;
        while done < bytes.len() {
            match nix::unistd::read(&self.reader, &mut bytes[done..]) {
                Ok(0) => {
                    signal::check()?;
                    return Err(CommError::lost("the connection was closed"));
                }
                Ok(count) => done += count,
                Err(error) => survive(error, "receiving")?,
            }
            // A message that is longer or shorter than expected would block here for ever.
            if done >= FRAME_BYTES && done < FRAME_BYTES + size {
                let frame: [u8; FRAME_BYTES] = std::array::from_fn(|index| bytes[index]);
                Frame::from_bytes(frame).require(expected)?;
            }
        }
        self.received = self.received.wrapping_add(1);
        message.frame().require(expected)
    }

    #[inline]
    fn is_free(&mut self) -> Result<bool, CommError> {
        is_ready(&self.writer, PollFlags::POLLOUT, PollTimeout::ZERO)
    }

    #[inline]
    fn has_arrived(&mut self) -> Result<bool, CommError> {
        Ok(self.arrived()? > 0)
    }

    fn wait_for_arrival(&mut self) -> Result<(), CommError> {
        while !is_ready(&self.reader, PollFlags::POLLIN, PollTimeout::NONE)? {}
        Ok(())
    }

    #[inline]
    fn arrived(&mut self) -> Result<u64, CommError> {
        let mut count: libc::c_int = 0;
        // SAFETY: FIONREAD stores one int, and `count` is valid for writing.
        let answer = unsafe { libc::ioctl(self.reader.as_raw_fd(), libc::FIONREAD, &raw mut count) };
        if answer != 0 {
            return Err(CommError::system("FIONREAD", io::Error::last_os_error()));
        }
        Ok(u64::from(count.unsigned_abs()))
    }

    fn parameters(&self) -> Parameters {
        let mut found = vec![("frame_bytes", FRAME_BYTES as u64)];
        match self.eager {
            Eager::Pipe(_) => {
                if let Ok(size) = fcntl(&self.writer, FcntlArg::F_GETPIPE_SZ) {
                    found.push(("pipe_bytes", u64::from(size.unsigned_abs())));
                }
            }
            Eager::Socket => {
                if let Ok(size) = getsockopt(&self.writer, sockopt::SndBuf) {
                    found.push(("send_buffer_bytes", size as u64));
                }
                if let Ok(size) = getsockopt(&self.writer, sockopt::RcvBuf) {
                    found.push(("receive_buffer_bytes", size as u64));
                }
                found.extend(tcp_parameters(self.writer.as_raw_fd()));
            }
        }
        found
    }
}

/// Sizes come from a plan, whose sizes fit.
#[inline]
fn length(size: usize) -> u32 {
    u32::try_from(size).unwrap_or(u32::MAX)
}

/// Decides whether a failed call is repeated.
#[cold]
fn survive(error: Errno, action: &str) -> Result<(), CommError> {
    signal::check()?;
    match error {
        Errno::EINTR => Ok(()),
        Errno::EPIPE | Errno::ECONNRESET | Errno::ECONNABORTED => {
            Err(CommError::lost("the connection was closed"))
        }
        // Sockets between two hosts have a limit on silence.
        Errno::EAGAIN => Err(CommError::lost("nothing came for too long")),
        Errno::ETIMEDOUT | Errno::EHOSTUNREACH | Errno::ENETUNREACH | Errno::EHOSTDOWN => {
            Err(CommError::lost(error.desc()))
        }
        _ => Err(CommError::system(action, error)),
    }
}

fn is_ready(fd: &OwnedFd, event: PollFlags, timeout: PollTimeout) -> Result<bool, CommError> {
    let mut fds = [PollFd::new(fd.as_fd(), event)];
    match poll(&mut fds, timeout) {
        Ok(count) => Ok(count > 0),
        Err(error) => survive(error, "poll").map(|()| false),
    }
}

/// Sets what every TCP connection here has: no waiting for more to send, and an end when the other host is
/// silent.
pub(crate) fn tune_tcp(socket: &TcpStream) -> Result<(), CommError> {
    let failed = |error: Errno| CommError::system("setting TCP options", error);
    socket.set_nodelay(true).map_err(|error| CommError::system("TCP_NODELAY", error))?;
    setsockopt(socket, sockopt::KeepAlive, &true).map_err(failed)?;
    // A host that is gone is noticed after 5 + 3 * 2 s, and one that takes nothing after 15 s.
    setsockopt(socket, sockopt::TcpKeepIdle, &5).map_err(failed)?;
    setsockopt(socket, sockopt::TcpKeepInterval, &2).map_err(failed)?;
    setsockopt(socket, sockopt::TcpKeepCount, &3).map_err(failed)?;
    setsockopt(socket, sockopt::TcpUserTimeout, &15_000).map_err(failed)
}

/// Largest segment [bytes], if it is a TCP connection.
fn tcp_parameters(socket: RawFd) -> Parameters {
    let mut size: libc::c_int = 0;
    let mut length = u32::try_from(size_of_val(&size)).unwrap_or(0);
    let (level, option) = (libc::IPPROTO_TCP, libc::TCP_MAXSEG);
    // SAFETY: both pointers are valid for writing, and the length is that of the value.
    let answer = unsafe { libc::getsockopt(socket, level, option, (&raw mut size).cast(), &raw mut length) };
    if answer == 0 { vec![("largest_segment_bytes", u64::from(size.unsigned_abs()))] } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn pair() -> (StreamChannel, StreamChannel) {
        let (one, other) = UnixStream::pair().unwrap();
        (StreamChannel::of_unix(one).unwrap(), StreamChannel::of_unix(other).unwrap())
    }

    fn pattern(index: usize) -> u8 {
        (index * 7 + index / 251).to_le_bytes()[0]
    }

    fn pipes() -> (StreamChannel, StreamChannel) {
        let ((r1, w1), (r2, w2)) = (io::pipe().unwrap(), io::pipe().unwrap());
        (
            StreamChannel::of_pipes(r1.into(), w2.into()).unwrap(),
            StreamChannel::of_pipes(r2.into(), w1.into()).unwrap(),
        )
    }

    #[test]
    fn messages_of_every_size_arrive_as_they_were() {
        for (mut one, mut other) in [pair(), pipes()] {
            let sizes = [0, 1, 7, 4096, 65_536, 3_000_001];
            let sender = thread::spawn(move || {
                let mut message = Message::with_capacity(3_000_001).unwrap();
                for size in sizes {
                    for (index, byte) in message.payload(size).iter_mut().enumerate() {
                        *byte = pattern(index);
                    }
                    one.send(&mut message, size).unwrap();
                    let done = one.begin_send(&mut message, size).unwrap();
                    one.finish_send(&mut message, size, done).unwrap();
                }
            });
            let mut message = Message::with_capacity(3_000_001).unwrap();
            for size in sizes {
                for _ in 0..2 {
                    message.payload(size).fill(0);
                    other.receive(&mut message, size).unwrap();
                    let payload = message.payload(size);
                    assert!(payload.iter().enumerate().all(|(index, byte)| *byte == pattern(index)));
                }
            }
            sender.join().unwrap();
        }
    }

    #[test]
    fn a_message_of_another_size_is_a_disagreement() {
        let (mut one, mut other) = pair();
        let mut message = Message::with_capacity(100).unwrap();
        one.send(&mut message, 10).unwrap();
        let error = other.receive(&mut message, 20).unwrap_err();
        assert!(matches!(error, CommError::Disagreement(_)), "{error}");
    }

    #[test]
    fn a_closed_connection_is_a_lost_endpoint() {
        for (one, mut other) in [pair(), pipes()] {
            drop(one);
            let mut message = Message::with_capacity(100).unwrap();
            assert!(matches!(other.receive(&mut message, 1), Err(CommError::PeerLost { .. })));
            assert!(matches!(other.send(&mut message, 1), Err(CommError::PeerLost { .. })));
        }
    }

    #[test]
    fn looks_do_not_wait() {
        for (mut one, mut other) in [pair(), pipes()] {
            assert!(!other.has_arrived().unwrap());
            assert!(one.is_free().unwrap());
            let mut message = Message::with_capacity(1 << 22).unwrap();
            let done = one.begin_send(&mut message, 1 << 22).unwrap();
            assert!(done > 0 && done < 1 << 22);
            assert!(!one.is_free().unwrap());
            other.wait_for_arrival().unwrap();
            assert!(other.has_arrived().unwrap());
            assert_eq!(other.arrived().unwrap(), done as u64);
        }
    }
}

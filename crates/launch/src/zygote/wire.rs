//! Messages between keeper and zygote.

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, recv, recvmsg, send as send_bytes, sendmsg,
};
use serde::{Deserialize, Serialize};

use crate::error::{During, LaunchError};

/// Most descriptors that go with one message.
const MOST_DESCRIPTORS: usize = 5;
const ANSWER_BYTES: usize = 64 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// Make another zygote, which listens at the socket that comes along.
    Divide,
    Prepare,
    Spawn {
        has_metrics: bool,
        has_leaf: bool,
    },
    Sweep,
}

impl Order {
    const fn encode(self) -> [u8; 2] {
        match self {
            Self::Divide => [b'd', 0],
            Self::Prepare => [b'p', 0],
            Self::Spawn { has_metrics, has_leaf } => [b's', has_metrics as u8 | (has_leaf as u8) << 1],
            Self::Sweep => [b'w', 0],
        }
    }

    const fn decode(bytes: [u8; 2]) -> Option<Self> {
        match bytes {
            [b'd', _] => Some(Self::Divide),
            [b'p', _] => Some(Self::Prepare),
            [b's', bits] => Some(Self::Spawn { has_metrics: bits & 1 != 0, has_leaf: bits & 2 != 0 }),
            [b'w', _] => Some(Self::Sweep),
            _ => None,
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    Started,
    Divided { pid: i32 },
    Prepared { degraded: Vec<String> },
    Swept { count: u32 },
    Failed { code: String, message: String, hint: Option<String> },
}

pub(super) fn error_of(code: &str, message: String, hint: Option<String>) -> LaunchError {
    match code {
        "bad_request" => LaunchError::Request { what: "specification", reason: message },
        "capability" => LaunchError::Capability { what: "sandbox".into(), reason: message, hint },
        _ => LaunchError::Zygote { what: format!("failed: {message}") },
    }
}

pub(super) fn send(
    socket: &OwnedFd,
    order: Order,
    descriptors: &[BorrowedFd<'_>],
) -> Result<(), LaunchError> {
    let raw: Vec<RawFd> = descriptors.iter().map(AsRawFd::as_raw_fd).collect();
    let rights = [ControlMessage::ScmRights(&raw)];
    let control: &[ControlMessage<'_>] = if raw.is_empty() { &[] } else { &rights };
    let bytes = order.encode();
    sendmsg::<()>(socket.as_raw_fd(), &[IoSlice::new(&bytes)], control, MsgFlags::MSG_NOSIGNAL, None)
        .map(drop)
        .map_err(|errno| LaunchError::Zygote { what: format!("does not listen: {errno}") })
}

/// The next order; `None` when the keeper is gone.
pub(super) fn receive(socket: &OwnedFd) -> Option<(Order, Vec<OwnedFd>)> {
    let mut bytes = [0_u8; 2];
    let mut space = cmsg_space!([RawFd; MOST_DESCRIPTORS]);
    let mut descriptors = Vec::with_capacity(MOST_DESCRIPTORS);
    let length = loop {
        let mut slices = [IoSliceMut::new(&mut bytes)];
        let flags = MsgFlags::MSG_CMSG_CLOEXEC;
        match recvmsg::<()>(socket.as_raw_fd(), &mut slices, Some(&mut space), flags) {
            Err(Errno::EINTR) => {}
            Err(_) => return None,
            Ok(message) => {
                for control in message.cmsgs().ok()? {
                    if let ControlMessageOwned::ScmRights(raw) = control {
                        // SAFETY: the kernel just installed these descriptors for us alone.
                        descriptors.extend(raw.into_iter().map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }));
                    }
                }
                break message.bytes;
            }
        }
    };
    if length == bytes.len() { Order::decode(bytes).map(|order| (order, descriptors)) } else { None }
}

pub(super) fn send_answer(socket: &OwnedFd, answer: &Answer) {
    if let Ok(text) = serde_json::to_vec(answer) {
        // A keeper that is gone needs no answer.
        let _ = send_bytes(socket.as_raw_fd(), &text, MsgFlags::MSG_NOSIGNAL);
    }
}

pub(super) fn receive_answer(socket: &OwnedFd) -> Result<Answer, LaunchError> {
    let mut text = vec![0_u8; ANSWER_BYTES];
    let length = loop {
        match recv(socket.as_raw_fd(), &mut text, MsgFlags::empty()) {
            Err(Errno::EINTR) => {}
            other => break other.during("read the zygote's answer")?,
        }
    };
    if length == 0 {
        return Err(LaunchError::Zygote { what: "ended without an answer".into() });
    }
    serde_json::from_slice(&text[..length])
        .map_err(|error| LaunchError::Zygote { what: format!("answers nonsense: {error}") })
}

/// An order that is understood is one that is sent.
#[cfg(fuzzing)]
pub(crate) fn decode_again(bytes: [u8; 2]) {
    if let Some(order) = Order::decode(bytes) {
        assert_eq!(Order::decode(order.encode()), Some(order));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
    use std::os::fd::AsFd;

    #[test]
    fn orders_and_descriptors_arrive() {
        let (here, there) =
            socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC).unwrap();
        let order = Order::Spawn { has_metrics: false, has_leaf: true };
        send(&here, order, &[here.as_fd(), there.as_fd()]).unwrap();
        let (received, descriptors) = receive(&there).unwrap();
        assert_eq!(received, order);
        assert_eq!(descriptors.len(), 2);
        drop(descriptors);
        drop(here);
        assert!(receive(&there).is_none());
    }
}

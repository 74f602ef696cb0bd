//! How the two endpoints come together: by a child of this process, or by TCP between two hosts.

mod child;
mod network;

use std::net::TcpStream;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

use child::Child;

use crate::channel::{Channel, SharedChannel, StreamChannel, tune_tcp};
use crate::options::{Options, Role, Transport};
use crate::plan::Plan;
use crate::{CommError, endpoint, placement, signal};

/// Executes what the options ask for, as far as it is this process's part.
pub(crate) fn launch(options: &Options) -> Result<(), CommError> {
    signal::install()?;
    match options.role {
        Role::Both => launch_both(options),
        Role::Child => be_child(options).map_err(|error| match &error {
            // Whoever ended this endpoint has ended the other one too, which tells.
            CommError::Interrupted { .. } => CommError::Told { exit_code: error.exit_code() },
            _ => error,
        }),
        Role::Listen => {
            let plan = Plan::read(&options.plan_path())?;
            pin(options, 0)?;
            let mut channel = network::listen(options)?;
            endpoint::lead(&mut channel, plan, options)
        }
        Role::Connect => {
            pin(options, 1)?;
            let mut channel = network::connect(options)?;
            endpoint::follow(&mut channel, options)
        }
    }
}

fn pin(options: &Options, rank: u32) -> Result<(), CommError> {
    options.cpu(rank).map_or(Ok(()), placement::pin)
}

/// Endpoint 0 here, endpoint 1 in a child.
fn launch_both(options: &Options) -> Result<(), CommError> {
    let plan = Plan::read(&options.plan_path())?;
    // Both CPUs are tried before anything starts: the own one last, where this process stays.
    let before = placement::allowed()?;
    for rank in [1, 0] {
        if let Some(cpu) = options.cpu(rank) {
            placement::require(cpu, &before)?;
        }
    }
    match options.transport {
        Transport::Pipe => {
            let (reader, child_writer) = pipe()?;
            let (child_reader, writer) = pipe()?;
            let child = Child::start(options, &[child_reader, child_writer])?;
            lead_with(StreamChannel::of_pipes(reader, writer)?, child, plan, options)
        }
        Transport::Unix => {
            let (own, other) = socket_pair()?;
            let child = Child::start(options, &[other.into()])?;
            lead_with(StreamChannel::of_unix(own)?, child, plan, options)
        }
        Transport::Tcp => {
            let (own, other) = network::pair(options)?;
            let child = Child::start(options, &[other.into()])?;
            lead_with(StreamChannel::of_tcp(own)?, child, plan, options)
        }
        Transport::Shared => {
            let memory = SharedChannel::create()?;
            let copy = memory.try_clone().map_err(|error| CommError::system("dup", error))?;
            let (own, other) = socket_pair()?;
            let channel = SharedChannel::join(memory, 0, own, options.patience(before.len()))?;
            let child = Child::start(options, &[copy, other.into()])?;
            lead_with(channel, child, plan, options)
        }
    }
}

/// Leads, then sees to it that the child has ended. The channel lives as long as the child, so that the
/// child is told to end before it can miss this endpoint.
fn lead_with(
    mut channel: impl Channel,
    child: Child,
    plan: Plan,
    options: &Options,
) -> Result<(), CommError> {
    let outcome = pin(options, 0).and_then(|()| endpoint::lead(&mut channel, plan, options));
    let ended = match &outcome {
        Ok(()) | Err(CommError::PeerLost { .. } | CommError::Refused(_)) => child.wait(),
        Err(_) => child.end(),
    };
    drop(channel);
    match (outcome, ended) {
        (Err(CommError::PeerLost { operations, planned, .. }), Some(reason)) => {
            Err(CommError::PeerLost { operations, planned, reason })
        }
        (Ok(()), Some(reason)) => Err(CommError::Disagreement(format!("at the end of the run, {reason}"))),
        (outcome, _) => outcome,
    }
}

fn be_child(options: &Options) -> Result<(), CommError> {
    let patience = options.patience(placement::allowed()?.len());
    pin(options, 1)?;
    let mut descriptors = options.descriptors.iter().copied();
    let mut next = || {
        let number = descriptors.next().filter(|number| *number > 2);
        let number = number.ok_or_else(|| CommError::usage("`--descriptors` are missing"))?;
        own(number)
    };
    match options.transport {
        Transport::Pipe => {
            let mut channel = StreamChannel::of_pipes(next()?, next()?)?;
            endpoint::follow(&mut channel, options)
        }
        Transport::Unix => {
            let mut channel = StreamChannel::of_socket(next()?)?;
            endpoint::follow(&mut channel, options)
        }
        Transport::Tcp => {
            let socket = TcpStream::from(next()?);
            tune_tcp(&socket)?;
            let mut channel = StreamChannel::of_tcp(socket)?;
            endpoint::follow(&mut channel, options)
        }
        Transport::Shared => {
            let mut channel = SharedChannel::join(next()?, 1, UnixStream::from(next()?), patience)?;
            endpoint::follow(&mut channel, options)
        }
    }
}

/// Takes a descriptor that endpoint 0 has handed over, and keeps it from further programs.
fn own(number: i32) -> Result<OwnedFd, CommError> {
    // SAFETY: the call takes numbers, and says whether the descriptor is open.
    if unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) } != 0 {
        return Err(CommError::usage(format!("`--descriptors` names {number}, which is not open")));
    }
    // SAFETY: open, and nothing else in this process uses it: its number was given for this purpose.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Reading end, writing end.
fn pipe() -> Result<(OwnedFd, OwnedFd), CommError> {
    let (reader, writer) = std::io::pipe().map_err(|error| CommError::system("pipe", error))?;
    Ok((reader.into(), writer.into()))
}

fn socket_pair() -> Result<(UnixStream, UnixStream), CommError> {
    UnixStream::pair().map_err(|error| CommError::system("socketpair", error))
}

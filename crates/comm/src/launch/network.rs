//! TCP connections.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::thread;
use std::time::{Duration, Instant};

use crate::channel::{StreamChannel, tune_tcp};
use crate::options::Options;
use crate::{CommError, signal};

/// Time in which the other host must come.
const PATIENCE: Duration = Duration::from_secs(30);
/// Longer than any pause of a run.
const LONGEST_SILENCE: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(20);
/// Both endpoints on this host, on a free port.
const LOCAL: &str = "127.0.0.1:0";

/// Both ends of a connection within this host.
pub(super) fn pair(options: &Options) -> Result<(TcpStream, TcpStream), CommError> {
    let text = options.address.as_deref().unwrap_or(LOCAL);
    let listener = bind(text)?;
    let failed = |error| CommError::system(format!("a connection to `{text}`"), error);
    let address = listener.local_addr().map_err(failed)?;
    let own = TcpStream::connect(address).map_err(failed)?;
    let own_address = own.local_addr().map_err(failed)?;
    loop {
        let (other, peer) = listener.accept().map_err(failed)?;
        // Anybody on this host may have come first.
        if peer == own_address {
            tune_tcp(&own)?;
            return Ok((own, other));
        }
    }
}

/// Waits for endpoint 1.
pub(super) fn listen(options: &Options) -> Result<StreamChannel, CommError> {
    let text = options.address.as_deref().unwrap_or(LOCAL);
    let listener = bind(text)?;
    let failed = |error| CommError::system(format!("listening at `{text}`"), error);
    if listener.local_addr().map_err(failed)?.port() == 0 || text.ends_with(":0") {
        return Err(CommError::usage(format!(
            "`--address` is `{text}`; allowed: a port from 1 to 65535, which endpoint 1 is given too"
        )));
    }
    listener.set_nonblocking(true).map_err(failed)?;
    let end = Instant::now() + PATIENCE;
    loop {
        signal::check()?;
        match listener.accept() {
            Ok((socket, _)) => {
                socket.set_nonblocking(false).map_err(failed)?;
                return open(socket);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock && Instant::now() < end => {
                thread::sleep(PAUSE);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                return Err(CommError::lost(format!(
                    "nobody has connected to `{text}` within {} s",
                    PATIENCE.as_secs()
                )));
            }
            Err(error) => return Err(failed(error)),
        }
    }
}

/// Connects to endpoint 0, which may come later.
pub(super) fn connect(options: &Options) -> Result<StreamChannel, CommError> {
    let text = options.address.as_deref().unwrap_or(LOCAL);
    let address = resolve(text)?;
    let end = Instant::now() + PATIENCE;
    loop {
        signal::check()?;
        match TcpStream::connect_timeout(&address, Duration::from_secs(5)) {
            Ok(socket) => return open(socket),
            Err(error) if Instant::now() >= end => {
                return Err(CommError::lost(format!("`{text}` does not answer: {error}")));
            }
            Err(_) => thread::sleep(PAUSE),
        }
    }
}

fn open(socket: TcpStream) -> Result<StreamChannel, CommError> {
    tune_tcp(&socket)?;
    // Whoever is at the other end may be no endpoint at all, and say nothing.
    socket
        .set_read_timeout(Some(LONGEST_SILENCE))
        .map_err(|error| CommError::system("setting TCP options", error))?;
    StreamChannel::of_tcp(socket)
}

fn bind(text: &str) -> Result<TcpListener, CommError> {
    let address = resolve(text)?;
    TcpListener::bind(address).map_err(|error| {
        CommError::usage(format!(
            "`--address` is `{text}`, where nothing can listen: {error}; allowed: an address of this host and a free port"
        ))
    })
}

fn resolve(text: &str) -> Result<SocketAddr, CommError> {
    let wrong = |problem: String| {
        CommError::usage(format!(
            "`--address` is `{text}`: {problem}; allowed: HOST:PORT as in `10.0.0.1:7000`"
        ))
    };
    let mut found = text.to_socket_addrs().map_err(|error| wrong(error.to_string()))?;
    found.next().ok_or_else(|| wrong("the name has no address".to_owned()))
}

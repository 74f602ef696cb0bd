//! The open loop: one thread sends when requests are due, one receives, one makes lost connections anew.

use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::LoadError;
use crate::address::Connection;
use crate::clock::{now_ns, sharpen_timers, sleep_until, wait_until};
use crate::orders::check::Expected;
use crate::orders::plan::Plan;
use crate::orders::pool::{Pool, Slot};
use crate::orders::request::{Operation, Request, draw_operations};
use crate::orders::response::{Response, ResponseReader};
use crate::orders::table::Table;

/// SOURCE: own choices; how often threads look whether it is over, and how long a connection may take.
const LOOK_MS: u8 = 20;
const CONNECT_LIMIT_MS: u64 = 2000;
const RECONNECT_PAUSE_MS: u64 = 50;
/// SOURCE: own choice; threads are ready long before.
const LEAD_NS: u64 = 50_000_000;
const OPEN: u64 = u64::MAX;

/// What a driver has done.
#[derive(Debug)]
pub(super) struct Flown {
    pub(super) table: Table,
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    pub(super) tally: Tally,
}

/// What is counted beside the records.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Connections that were lost with a request on its way, or without.
    pub(super) lost_connections: AtomicU64,
    /// Answers that could not be read.
    pub(super) malformed: AtomicU64,
    /// Bytes that nobody had asked for.
    pub(super) unexpected: AtomicU64,
    /// Requests that have their answer, or have lost their connection.
    settled: AtomicU64,
}

/// What all threads share.
#[derive(Debug)]
struct Flight<'plan> {
    plan: &'plan Plan,
    host: String,
    expected: Expected,
    table: Table,
    tally: Tally,
    pool: Pool,
    epoll: Epoll,
    lost: Sender<usize>,
    /// When the receiver gives up.
    limit_ns: AtomicU64,
    is_over: AtomicBool,
}

/// Sends every request of a plan when it is due, and receives until all are answered or the drain's limit.
pub(super) fn fly(plan: &Plan) -> Result<Flown, LoadError> {
    let due = plan.schedule.draw();
    let operations = draw_operations(plan.schedule.seed, plan.mix, due.len());
    let expected = Expected::new(plan.drawn);
    let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)
        .map_err(|error| LoadError::system("making an epoll instance", error))?;
    let (lost, to_repair) = channel();
    allow_descriptors();
    let connections: Vec<Connection> =
        (0..plan.connections).map(|_| connect(plan)).collect::<Result<_, _>>()?;
    let start_ns = now_ns() + LEAD_NS;
    let flight = Flight {
        plan,
        host: plan.address.to_string(),
        expected,
        table: Table::new(due.iter().map(|due| start_ns + due.offset_ns), &operations),
        tally: Tally::default(),
        pool: Pool::new(plan.connections),
        epoll,
        lost,
        limit_ns: AtomicU64::new(OPEN),
        is_over: AtomicBool::new(false),
    };
    for (place, connection) in connections.into_iter().enumerate() {
        flight.open(place, connection)?;
    }
    let end_ns = start_ns + plan.schedule.duration_ns;
    let shared = &flight;
    std::thread::scope(|scope| {
        let receiver = scope.spawn(|| flight.receive_all());
        let repairer = scope.spawn(move || shared.repair_all(&to_repair));
        flight.send_all();
        flight.limit_ns.store(end_ns + plan.drain_limit_ms * 1_000_000, Relaxed);
        let outcome = receiver.join().unwrap_or_else(|_| Err(panicked("receiver")));
        flight.is_over.store(true, Relaxed);
        repairer.join().map_err(|_| panicked("thread that connects"))?;
        outcome
    })?;
    Ok(Flown { table: flight.table, start_ns, end_ns: now_ns(), tally: flight.tally })
}

/// Lets this process open as many connections as the system allows it at all.
fn allow_descriptors() {
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        // A process may always raise its own limit up to the hard one.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    }
}

fn panicked(thread: &str) -> LoadError {
    LoadError::Failed(format!("the {thread} has panicked"))
}

fn connect(plan: &Plan) -> Result<Connection, LoadError> {
    let limit = Duration::from_millis(CONNECT_LIMIT_MS);
    let stream = TcpStream::connect_timeout(&plan.address, limit)
        .and_then(|stream| stream.set_nodelay(true).map(|()| stream));
    let stream =
        stream.map_err(|error| LoadError::system(format!("connecting to `{}`", plan.address), error))?;
    Ok(Connection::from(OwnedFd::from(stream)))
}

impl Flight<'_> {
    fn request(&self, index: usize) -> Request {
        let operation = Operation::ALL[self.table.records[index].operation as usize].0;
        Request::draw(self.plan.drawn, operation, index)
    }

    fn send_all(&self) {
        sharpen_timers();
        for (index, record) in self.table.records.iter().enumerate() {
            let bytes = self.request(index).bytes(&self.host);
            wait_until(record.intended_ns, self.plan.spin_us * 1000);
            if crate::signal::is_asked_to_end() {
                return;
            }
            match self.pool.take(index) {
                Some(place) => self.dispatch(place, index, &bytes),
                None => record.set_held_back(),
            }
        }
    }

    /// Sends a request on a place that is free, or on another one where its connection is lost by now.
    fn dispatch(&self, mut place: usize, index: usize, bytes: &[u8]) {
        let (mut slot, connection) = loop {
            let slot = self.pool.slot(place);
            if let Some(connection) = slot.connection.clone() {
                break (slot, connection);
            }
            drop(slot);
            let Some(other) = self.pool.put_back(index) else {
                return self.table.records[index].set_held_back();
            };
            place = other;
        };
        slot.awaited = Some(index);
        self.table.records[index].set_sent(now_ns());
        // An empty socket takes a request whole; one that does not is lost.
        let is_sent = connection.send_some(bytes).is_ok_and(|count| count == bytes.len());
        if !is_sent {
            self.lose(place, &mut slot);
        }
    }

    /// Gives a connection up; a request on its way stays without an answer.
    fn lose(&self, place: usize, slot: &mut Slot) {
        let Some(connection) = slot.connection.take() else { return };
        connection.close();
        if slot.awaited.take().is_some() {
            self.tally.settled.fetch_add(1, Relaxed);
        }
        slot.reader = ResponseReader::default();
        self.tally.lost_connections.fetch_add(1, Relaxed);
        self.pool.withdraw(place);
        // Nobody is there to repair once it is over.
        let _ = self.lost.send(place);
    }

    /// Uses a new connection at a place.
    fn open(&self, place: usize, connection: Connection) -> Result<(), LoadError> {
        let connection = Arc::new(connection);
        self.pool.slot(place).connection = Some(Arc::clone(&connection));
        self.epoll
            .add(&*connection, EpollEvent::new(EpollFlags::EPOLLIN, place as u64))
            .map_err(|error| LoadError::system("waiting for a connection", error))?;
        self.go_on(place);
        Ok(())
    }

    /// Gives a free place to the request that has waited longest.
    fn go_on(&self, place: usize) {
        if let Some(index) = self.pool.release(place) {
            self.dispatch(place, index, &self.request(index).bytes(&self.host));
        }
    }

    fn repair_all(&self, to_repair: &Receiver<usize>) {
        while !self.is_over.load(Relaxed) {
            match to_repair.recv_timeout(Duration::from_millis(u64::from(LOOK_MS))) {
                Ok(place) => self.repair(place),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn repair(&self, place: usize) {
        while !self.is_over.load(Relaxed) {
            if connect(self.plan).and_then(|connection| self.open(place, connection)).is_ok() {
                return;
            }
            sleep_until(now_ns() + RECONNECT_PAUSE_MS * 1_000_000);
        }
    }

    fn receive_all(&self) -> Result<(), LoadError> {
        let mut buffer = vec![0; 1 << 16];
        let mut events = [EpollEvent::empty(); 64];
        loop {
            let limit_ns = self.limit_ns.load(Relaxed);
            let is_settled = self.tally.settled.load(Relaxed) >= self.table.records.len() as u64;
            let is_over = limit_ns != OPEN && (is_settled || now_ns() >= limit_ns);
            if is_over || crate::signal::is_asked_to_end() {
                return Ok(());
            }
            let count = match self.epoll.wait(&mut events, EpollTimeout::from(LOOK_MS)) {
                Ok(count) => count,
                Err(Errno::EINTR) => 0,
                Err(error) => return Err(LoadError::system("waiting for answers", error)),
            };
            for event in &events[..count] {
                self.receive(usize::try_from(event.data()).unwrap_or(0), &mut buffer);
            }
        }
    }

    fn receive(&self, place: usize, buffer: &mut [u8]) {
        let mut slot = self.pool.slot(place);
        // An event may be older than the connection that is there now: then there is nothing yet.
        let Some(connection) = slot.connection.clone() else { return };
        let Ok(received) = connection.receive(buffer).or(Ok::<_, ()>(Some(0))) else { return };
        let Some(count) = received else { return };
        let received_ns = now_ns();
        let response = if count == 0 { Ok(slot.reader.end()) } else { slot.reader.push(&buffer[..count]) };
        let Ok(response) = response else {
            self.tally.malformed.fetch_add(1, Relaxed);
            return self.lose(place, &mut slot);
        };
        let is_usable = count > 0 && slot.reader.is_empty();
        let Some(response) = response else {
            let is_awaited = slot.awaited.is_some();
            if count == 0 || !is_awaited {
                self.tally.unexpected.fetch_add(u64::from(count > 0), Relaxed);
                self.lose(place, &mut slot);
            }
            return;
        };
        let Some(index) = slot.awaited.take() else {
            self.tally.unexpected.fetch_add(1, Relaxed);
            return self.lose(place, &mut slot);
        };
        self.table.records[index].set_answer(received_ns, response.status);
        if is_usable && !response.is_last {
            drop(slot);
            self.go_on(place);
        } else {
            self.tally.unexpected.fetch_add(u64::from(!slot.reader.is_empty()), Relaxed);
            self.lose(place, &mut slot);
            drop(slot);
        }
        self.keep(index, &response);
    }

    /// Checks an answer, after the connection has been given to the next request.
    fn keep(&self, index: usize, response: &Response) {
        let fault = self.expected.fault(&self.request(index), response.status, &response.body);
        if let Some(fault) = fault {
            self.table.records[index].set_fault(fault);
        }
        self.tally.settled.fetch_add(1, Relaxed);
    }
}

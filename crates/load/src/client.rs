//! The client: requests that are sent when they are due, whatever the answers do.

mod caller;
mod closed;
mod incoming;
mod open;
mod pool;
mod request;
mod summary;
mod tally;

use serde_json::Value;

use crate::LoadError;
use crate::address::Connection;
use crate::record::RequestTable;
use tally::Tally;

pub(crate) use caller::Caller;
pub(crate) use request::Client;
pub(crate) use summary::table_text;

/// SOURCE: own choice; more records than that fill 2.4 GB.
pub(crate) const MOST_REQUESTS: f64 = 50e6;

impl Client {
    /// Connects, makes the records, and sends from `begin` on; `begin` is told how many requests there are
    /// and gives the stamp from which offsets count.
    pub(crate) fn execute(
        &self,
        begin: impl FnOnce(usize) -> Result<u64, LoadError>,
    ) -> Result<Value, LoadError> {
        let due = self.schedule.draw();
        let mut table = RequestTable::create(self.requests_path.as_deref(), due.len())?;
        let count = if self.closed_loop > 0 { self.closed_loop } else { self.connections };
        let connections: Result<Vec<Connection>, _> = (0..count).map(|_| self.address.connect()).collect();
        let connections = connections?;
        let start_ns = begin(due.len())?;
        for (index, due) in due.iter().enumerate() {
            table.plan(index, due.is_long, start_ns + due.offset_ns);
        }
        drop(due);
        let tally = Tally::default();
        let end_ns = start_ns + self.schedule.duration_ns;
        if self.closed_loop > 0 {
            closed::execute(self, &table, &tally, &connections, end_ns)?;
        } else {
            open::execute(self, &table, &tally, connections, end_ns)?;
        }
        let client_end_ns = crate::clock::now_ns();
        Ok(summary::summarise(self, &table, &tally, start_ns, client_end_ns))
    }
}

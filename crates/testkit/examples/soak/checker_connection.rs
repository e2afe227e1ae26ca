//! The connection of the checker: every operation, on one HTTP connection as long as that lasts.

use std::io;
use std::net::SocketAddr;

use sabir_testkit::http::Http;
use sabir_testkit::sse::{self, SseFrame};
use serde_json::Value;

use crate::agents::Agent;
use crate::client::GIVE_UP;
use crate::dialect_client::{DialectClient, Mount, Operation};
use crate::promise;

pub struct CheckerConnection {
    address: SocketAddr,
    mount: Mount,
    http: Option<Http>,
}

impl CheckerConnection {
    pub fn new(address: SocketAddr) -> Self {
        Self { address, mount: Mount::Root, http: None }
    }

    /// A connection that sees the tasks of one agent only.
    pub fn of_agent(address: SocketAddr, agent: &'static Agent) -> Self {
        Self { mount: Mount::Agent(agent), ..Self::new(address) }
    }

    fn exchange(
        &mut self,
        dialect: &DialectClient,
        operation: &Operation<'_>,
        headers: &[(&str, &str)],
    ) -> io::Result<sabir_testkit::http::HttpReply> {
        let request = dialect.request(operation, self.mount);
        let mut http = self.http.take().map_or_else(|| Http::connect(self.address), Ok)?;
        let headers = dialect.headers(headers);
        http.give_up_after(GIVE_UP);
        let reply = http.exchange(request.method, &request.path, &headers, request.body.as_bytes())?;
        if reply.header("connection") != Some("close") {
            self.http = Some(http);
        }
        Ok(reply)
    }

    pub fn ask(&mut self, dialect: &DialectClient, operation: &Operation<'_>) -> io::Result<Result<Value, i64>> {
        Ok(dialect.read(&self.exchange(dialect, operation, &[])?))
    }

    pub fn list(&mut self, dialect: &DialectClient, filters: &[(&str, &str)]) -> Result<Value, String> {
        match self.ask(dialect, &Operation::List(filters)) {
            Ok(Ok(page)) => Ok(page),
            Ok(Err(code)) => Err(code.to_string()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// The ids of all tasks of a state, page by page; every page says the same total, and it is right.
    pub fn pages(&mut self, dialect: &DialectClient, state: Option<&str>) -> Vec<String> {
        let mut ids = Vec::new();
        let mut token = String::new();
        let mut total = None;
        loop {
            let mut filters = vec![("pageSize", "100")];
            filters.extend(state.map(|state| ("status", state)));
            if !token.is_empty() {
                filters.push(("pageToken", &token));
            }
            let page = match self.list(dialect, &filters) {
                Ok(page) => page,
                Err(error) => {
                    promise::TOTALS.check(false, || format!("no page in {}: {error}", dialect.name));
                    return ids;
                }
            };
            let total_size = page["totalSize"].as_u64();
            promise::TOTALS
                .check(total_size == *total.get_or_insert(total_size), || format!("{total_size:?} after {total:?}"));
            let tasks = page["tasks"].as_array().into_iter().flatten();
            ids.extend(tasks.filter_map(|task| task["id"].as_str()).map(str::to_owned));
            token = page["nextPageToken"].as_str().unwrap_or_default().to_owned();
            if token.is_empty() {
                break;
            }
        }
        let count = ids.len() as u64;
        promise::TOTALS.check(total == Some(Some(count)), || format!("{count} of {state:?}, and a total of {total:?}"));
        ids
    }

    pub fn replay(&mut self, dialect: &DialectClient, id: &str, after: u64) -> Result<Vec<SseFrame>, String> {
        let after = after.to_string();
        let headers = [("Last-Event-ID", after.as_str())];
        let reply = self.exchange(dialect, &Operation::Subscribe(id), &headers).map_err(|error| error.to_string())?;
        if reply.status != 200
            || !reply.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"))
        {
            return Err(reply.text());
        }
        Ok(sse::frames(&reply.text()))
    }
}

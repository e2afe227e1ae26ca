//! What a remote agent was asked, so that tests can count and look.

use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::protocol::{Operation, RemoteProtocol};

#[derive(Debug, Clone, PartialEq)]
pub struct RecordedRequest {
    pub at: Instant,
    /// Connections are numbered from 1.
    pub connection: usize,
    /// The HTTP method.
    pub method: String,
    /// With the query.
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// The body, if it is JSON.
    pub json: Option<Value>,
    /// What is at the path that was asked for.
    pub protocol: Option<RemoteProtocol>,
    /// What was asked for, as far as it can be told from method, path and body.
    pub operation: Option<Operation>,
}

impl RecordedRequest {
    /// By its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The method that a JSON-RPC request names.
    pub fn rpc_method(&self) -> Option<&str> {
        self.json.as_ref()?.get("method")?.as_str()
    }

    /// The params of a JSON-RPC request, the body of any other, `null` without either.
    pub fn params(&self) -> Value {
        let json = self.json.clone().unwrap_or_default();
        match json.get("params") {
            Some(params) if json.get("jsonrpc").is_some() => params.clone(),
            _ => json,
        }
    }
}

#[derive(Default)]
pub(super) struct Requests {
    list: Mutex<Vec<RecordedRequest>>,
    added: Condvar,
}

impl Requests {
    pub(super) fn record(&self, request: RecordedRequest) {
        self.list().push(request);
        self.added.notify_all();
    }

    pub(super) fn all(&self) -> Vec<RecordedRequest> {
        self.list().clone()
    }

    pub(super) fn forget(&self) {
        self.list().clear();
    }

    /// False if they are not so when the time is over.
    pub(super) fn wait_until(&self, limit: Duration, are_so: impl Fn(&[RecordedRequest]) -> bool) -> bool {
        let waiting = self.added.wait_timeout_while(self.list(), limit, |list| !are_so(list));
        waiting.is_ok_and(|(_, result)| !result.timed_out())
    }

    fn list(&self) -> MutexGuard<'_, Vec<RecordedRequest>> {
        self.list.lock().expect("no thread panics while it holds this")
    }
}

//! `RemoteAgent`: what tests hold of a remote agent.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use super::faults::{Faults, TasksAfterDeath};
use super::planted::PlantedFault;
use super::protocol::{Operation, RemoteProtocol};
use super::requests::RecordedRequest;
use super::server::{Server, Settings};
use super::task::RemoteTask;
use super::tasks::RemoteTasks;

/// An A2A server on a loopback port, until this is dropped. The words that it understands are listed in `agent.rs`.
pub struct RemoteAgent {
    server: Arc<Server>,
}

/// What a remote agent is before it starts.
pub struct RemoteAgentBuilder {
    settings: Settings,
    tasks: RemoteTasks,
    faults: Faults,
    port: u16,
}

impl RemoteAgent {
    /// An honest agent that speaks this protocol: JSON-RPC at `/`, HTTP+JSON below `/`.
    pub fn start(protocol: RemoteProtocol) -> Self {
        Self::builder(protocol).start()
    }

    /// An agent that is honest in everything but this one rule. It offers push notifications.
    pub fn planted(protocol: RemoteProtocol, fault: PlantedFault) -> Self {
        Self::builder(protocol).offering_push().planted(fault).start()
    }

    pub fn builder(protocol: RemoteProtocol) -> RemoteAgentBuilder {
        let settings = Settings {
            protocols: vec![protocol],
            mount: String::new(),
            tenant: None,
            bearer: None,
            offers_push: false,
            deduplicates: false,
            knows_keys: false,
            planted: None,
        };
        RemoteAgentBuilder { settings, tasks: RemoteTasks::default(), faults: Faults::default(), port: 0 }
    }

    pub fn address(&self) -> SocketAddr {
        self.server.address
    }

    /// Where the card is looked for: `http://127.0.0.1:PORT`, with the mount if there is one.
    pub fn url(&self) -> String {
        format!("http://{}{}", self.server.address, self.server.settings.mount)
    }

    /// The URL of the interface of a protocol that it speaks, as an honest card gives it.
    pub fn interface_url(&self, protocol: RemoteProtocol) -> Option<String> {
        let index = self.server.settings.protocols.iter().position(|known| *known == protocol)?;
        Some(self.server.interface_url(index, protocol))
    }

    /// With what is left of faults that happen a number of times.
    pub fn faults(&self) -> Faults {
        self.server.faults()
    }

    pub fn set_faults(&self, faults: Faults) {
        self.server.change_faults(|known| *known = faults);
    }

    pub fn change_faults(&self, change: impl FnOnce(&mut Faults)) {
        self.server.change_faults(change);
    }

    /// Every request that was read, in the order of arrival.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.server.requests.all()
    }

    pub fn requests_for(&self, operation: Operation) -> Vec<RecordedRequest> {
        self.requests().into_iter().filter(|request| request.operation == Some(operation)).collect()
    }

    pub fn count(&self, operation: Operation) -> usize {
        self.requests_for(operation).len()
    }

    pub fn forget_requests(&self) {
        self.server.requests.forget();
    }

    /// Waits for so many requests; false if they are not there when the time is over.
    pub fn wait_for_requests(&self, operation: Operation, count: usize, limit: Duration) -> bool {
        self.server.requests.wait_until(limit, |list| {
            list.iter().filter(|request| request.operation == Some(operation)).count() >= count
        })
    }

    /// How many connections were accepted, and how many of them are open.
    pub fn connections(&self) -> usize {
        self.server.accepted()
    }

    pub fn open_connections(&self) -> usize {
        self.server.open_connections()
    }

    /// What is true of a task, whatever the wire said.
    pub fn task(&self, id: &str) -> Option<RemoteTask> {
        self.server.tasks.get(id)
    }

    /// All tasks, in the order of their creation; a handle that another agent can be started with.
    pub fn tasks(&self) -> RemoteTasks {
        self.server.tasks.clone()
    }

    /// Waits until a task is so; false if it is not when the time is over.
    pub fn wait_for_task(&self, id: &str, limit: Duration, is_so: impl Fn(&RemoteTask) -> bool) -> bool {
        self.server.tasks.wait_until(limit, |tasks| tasks.iter().any(|task| task.id == id && is_so(task)))
    }

    /// Lets a task pass one step of `hold` or `steps`.
    pub fn release(&self, id: &str) {
        self.server.tasks.release(id);
    }

    /// Closes the listener and resets all connections. The port stays its own.
    pub fn die(&self, tasks: TasksAfterDeath) {
        self.server.die(tasks, None);
        self.server.wait_until_closed();
    }

    /// The same, and comes back on the same port after this time.
    pub fn die_for(&self, time: Duration, tasks: TasksAfterDeath) {
        self.server.die(tasks, Some(time));
    }

    /// Listens again on the same port.
    pub fn come_back(&self) {
        self.server.listen().expect("the port is held for this server");
    }

    pub fn is_listening(&self) -> bool {
        self.server.is_listening()
    }
}

impl Drop for RemoteAgent {
    fn drop(&mut self) {
        self.server.end();
    }
}

impl RemoteAgentBuilder {
    /// Speaks this protocol too, at `/VERSION/jsonrpc` or `/VERSION/rest`. The card lists protocols in this order.
    pub fn speaking(mut self, protocol: RemoteProtocol) -> Self {
        self.settings.protocols.push(protocol);
        self
    }

    /// Everything, the card included, is below this path, such as `/agents/one`.
    pub fn mounted_at(mut self, path: &str) -> Self {
        self.settings.mount = path.trim_end_matches('/').to_owned();
        self
    }

    /// The interfaces of 1.0 name this tenant and insist on it.
    pub fn with_tenant(mut self, tenant: &str) -> Self {
        self.settings.tenant = Some(tenant.to_owned());
        self
    }

    /// Everything but the card needs this bearer token.
    pub fn with_bearer(mut self, token: &str) -> Self {
        self.settings.bearer = Some(token.to_owned());
        self
    }

    /// Promises push notifications, and delivers them to loopback addresses.
    pub fn offering_push(mut self) -> Self {
        self.settings.offers_push = true;
        self
    }

    /// A message with a known id is answered with the task that it began, in place of a second one.
    pub fn deduplicating(mut self) -> Self {
        self.settings.deduplicates = true;
        self
    }

    /// A request with a known `Idempotency-Key` is answered with the task that it made, and the card announces that. 0.1 has
    /// no such announcement.
    pub fn knowing_idempotency_keys(mut self) -> Self {
        self.settings.knows_keys = true;
        self
    }

    /// Works on tasks that another agent has too.
    pub fn with_tasks(mut self, tasks: RemoteTasks) -> Self {
        self.tasks = tasks;
        self
    }

    pub fn with_faults(mut self, faults: Faults) -> Self {
        self.faults = faults;
        self
    }

    pub fn planted(mut self, fault: PlantedFault) -> Self {
        self.settings.planted = Some(fault);
        self
    }

    /// On this port in place of a free one.
    pub fn on_port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    pub fn start(self) -> RemoteAgent {
        let server = Server::start(self.settings, self.tasks, self.port).expect("a loopback port can be listened on");
        server.change_faults(|known| *known = self.faults);
        RemoteAgent { server }
    }
}

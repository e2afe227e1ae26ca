//! Webhooks: a thread for each push config that follows the task and posts what happens.
//!
//! Only plain HTTP to addresses of the loopback interface: tests talk to nobody else.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::planted::PlantedFault;
use super::protocol::RemoteProtocol;
use super::server::Server;
use super::spelling;
use super::task::{PushConfig, TaskEvent};
use super::tasks::{Look, WeakTasks};

const SLICE: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_secs(5);

/// Posts the events after the first `seen`, until the task is finished or the config is gone.
pub(super) fn deliver(server: &Arc<Server>, protocol: RemoteProtocol, task_id: &str, config: PushConfig, seen: usize) {
    if server.settings.planted == Some(PlantedFault::PushNeverDelivered) {
        return;
    }
    let (tasks, task_id) = (server.tasks.downgrade(), task_id.to_owned());
    thread::spawn(move || follow(&tasks, protocol, &task_id, &config, seen));
}

fn follow(tasks: &WeakTasks, protocol: RemoteProtocol, task_id: &str, config: &PushConfig, mut seen: usize) {
    loop {
        let Some(tasks) = tasks.upgrade() else {
            return;
        };
        let events = match tasks.events_after(task_id, seen, SLICE) {
            Look::Found(events) => events,
            Look::NotYet => continue,
            Look::Gone => return,
        };
        for event in events {
            seen += 1;
            let Some(task) = tasks.get(task_id).filter(|task| task.push_configs.contains(config)) else {
                return;
            };
            // Before 1.0, a webhook gets the task when its status changes.
            let body = match &event {
                TaskEvent::Artifact { .. } if !protocol.is_v1() => continue,
                _ if !protocol.is_v1() => spelling::task(protocol, &task),
                _ => spelling::event(protocol, task_id, &task.context_id, &event),
            };
            let _ = post(config, protocol, &body.to_string());
            if matches!(event, TaskEvent::Status { state, .. } if state.is_terminal()) {
                return;
            }
        }
    }
}

fn post(config: &PushConfig, protocol: RemoteProtocol, body: &str) -> Option<()> {
    let rest = config.url.strip_prefix("http://")?;
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let address: SocketAddr = authority.replace("localhost", "127.0.0.1").parse().ok()?;
    if !address.ip().is_loopback() {
        return None;
    }
    let media_type = if protocol.is_v1() { "application/a2a+json" } else { "application/json" };
    let mut head = format!("POST /{path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n");
    head.push_str(&format!("Content-Type: {media_type}\r\nContent-Length: {}\r\n", body.len()));
    if let Some(token) = &config.token {
        head.push_str(&format!("X-A2A-Notification-Token: {token}\r\n"));
    }
    if let (Some(scheme), Some(credentials)) = (&config.scheme, &config.credentials) {
        head.push_str(&format!("Authorization: {scheme} {credentials}\r\n"));
    }
    let mut socket = TcpStream::connect_timeout(&address, PATIENCE).ok()?;
    socket.set_read_timeout(Some(PATIENCE)).ok()?;
    socket.write_all(format!("{head}\r\n{body}").as_bytes()).ok()?;
    // The answer is waited for, so that deliveries keep their order.
    let _ = socket.read(&mut [0; 512]);
    Some(())
}

//! The server that a command talks to: where it is, and a client for it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use sabir_model::{Call, Task};
use sabir_outbound::Roots;
use sabir_outbound::remote::{Discovered, Remote, RemoteError, RemoteSettings};
use sabir_wire::PeerResponse;

use super::credentials::Credentials;
use super::failure::Failure;
use super::invocation::Invocation;
use super::received_task::LARGEST_TASK;
use super::{Surroundings, raw};
use crate::cli::{CliOptions, ProtocolOptions, ServerName};
use crate::local_server;
use crate::terminal_text::visible;

/// Files come within answers, and people may ask for large ones.
const LARGEST_ANSWER: usize = 256 << 20;

/// Where the server is, before anything is asked.
pub struct ServerAddress {
    pub url: String,
    pub roots: Roots,
    pub place: Place,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Somebody named it.
    Named,
    /// The one of this machine.
    Local,
}

/// A server, and all that is known of how it was named.
pub struct Connection {
    pub remote: Remote,
    pub invocation: Invocation,
    credentials: Credentials,
    place: Place,
}

impl ServerAddress {
    /// `url` is the one that stands among the words of the command; it wins over flags, and they over the environment.
    pub fn find(url: Option<&str>, server: &ServerName, around: &Surroundings) -> Result<Self, Failure> {
        let named = url.or(server.agent_card.as_deref()).or(around.variables.agent_card.as_deref());
        let mut address = match named {
            Some(named) => ServerAddress { url: url_of(named), roots: Roots::default(), place: Place::Named },
            None => {
                let options = CliOptions { config: server.config.clone(), ..CliOptions::default() };
                let local =
                    local_server::find(&options, around.load).map_err(|error| Failure::of_local_server(&error))?;
                ServerAddress { url: local.url, roots: local.roots, place: Place::Local }
            }
        };
        if let Some(agent) = &server.agent {
            address.url = format!("{}/agents/{agent}", address.url.trim_end_matches('/'));
        }
        Ok(address)
    }
}

impl Connection {
    pub async fn open(
        url: Option<&str>,
        server: &ServerName,
        protocol: &ProtocolOptions,
        poll_interval: Option<Duration>,
        around: &Surroundings,
    ) -> Result<Self, Failure> {
        let address = ServerAddress::find(url, server, around)?;
        let credentials = Credentials::new(server, &around.variables);
        let endpoint = match address.place {
            Place::Named => None,
            // Its card has the address for others, which may lead through a proxy.
            Place::Local => Some(address.url.clone()),
        };
        let mut settings = RemoteSettings {
            card_url: protocol.card_url.clone(),
            endpoint: protocol.endpoint.clone().or(endpoint),
            version: protocol.a2a_version,
            bindings: protocol.transport.clone(),
            tenant: protocol.tenant.clone(),
            roots: address.roots,
            largest_answer: LARGEST_ANSWER,
            largest_task: LARGEST_TASK,
            poll_interval,
            observer: protocol.raw.then(raw::observer),
            ..RemoteSettings::new(address.url)
        };
        credentials.add_to(&mut settings).await?;
        let remote = Remote::new(settings).map_err(|error| Failure::of_remote(&error, credentials.shown()))?;
        let invocation = Invocation::new(url, server, protocol);
        Ok(Connection { remote, invocation, credentials, place: address.place })
    }

    /// What is known of the server.
    pub async fn discovered(&self) -> Result<Arc<Discovered>, Failure> {
        self.remote.discovered().await.map_err(|error| self.failure(&error))
    }

    /// A call that is answered with a task.
    pub async fn task(&self, call: Call) -> Result<Task, Failure> {
        let received = self.remote.call(&call).await.map_err(|error| self.failure(&error))?;
        match received.response {
            PeerResponse::Task(task) => Ok(*task),
            _ => Err(Failure::strange("the server answered with something else than a task")),
        }
    }

    pub fn failure(&self, error: &RemoteError) -> Failure {
        let mut failure = Failure::of_remote(error, self.credentials.shown());
        // What was found odd about the card may explain it.
        if let Some(Ok(known)) = self.remote.discovered().now_or_never() {
            failure.notes = known.notes.iter().map(|note| visible(note)).collect();
        }
        match (self.place, &failure.hint) {
            (Place::Local, None) if error.is_unreachable() => {
                failure.with_hint("start a server with `sabir serve`, or name one by its URL")
            }
            _ => failure,
        }
    }
}

/// A host alone is meant as https, or as http if it is this machine.
pub fn url_of(named: &str) -> String {
    if named.contains("://") {
        return named.to_owned();
    }
    let host = named.split('/').next().unwrap_or(named);
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or(rest),
        None => host.split(':').next().unwrap_or(host),
    };
    let is_here = name == "localhost"
        || name.ends_with(".localhost")
        || name.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback());
    format!("{}://{named}", if is_here { "http" } else { "https" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_a_url_or_a_host() {
        for (named, expected) in [
            ("https://a/x", "https://a/x"),
            ("agents.example.com", "https://agents.example.com"),
            ("agents.example.com:8443/agents/x", "https://agents.example.com:8443/agents/x"),
            ("localhost:41242", "http://localhost:41242"),
            ("127.0.0.1:7/agents/x", "http://127.0.0.1:7/agents/x"),
            ("[::1]:7", "http://[::1]:7"),
            ("10.0.0.1", "https://10.0.0.1"),
        ] {
            assert_eq!(url_of(named), expected);
        }
    }
}

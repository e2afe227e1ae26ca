//! Where a request belongs, from verb, path and version alone.
//!
//! One pure function instead of a router's patterns: `{id}:cancel`, tenant prefixes and five generations of
//! paths do not fit those. Fixed paths are looked at before anything that could be an id.

use sabir_model::{AgentId, Error};

use crate::gateway::{self, Asked, Named, Thing};
use crate::http_json::{self, EndpointGroup, Found, Route};
use crate::jsonrpc::{Mount, Place};
use crate::version::{Requested, VersionHeader};
use crate::{CardFormat, Compat, Decoded, Head, Operation, ProtocolVersion, Reply, Responder, percent};

/// The agents of this server, as far as paths name them.
pub trait KnownAgents {
    fn knows(&self, id: &str) -> bool;
    /// All of them, for whoever named another one.
    fn ids(&self) -> Vec<AgentId>;
}

pub enum Surface<'a> {
    /// The public card, of one agent or of the server.
    Card {
        agent: Option<AgentId>,
        /// The format of the version that the caller names; `None`: the server's choice.
        format: Option<CardFormat>,
    },
    /// An operation, in one of the bindings.
    Call(Endpoint<'a>),
    /// The agents behind the gateway.
    AgentList,
    /// The gateway's card of one agent.
    GatewayCard(AgentId),
    Health,
    Ready,
    Refused(Refused),
}

/// Nothing to be had here, or not like this.
pub struct Refused {
    pub error: Error,
    responder: Responder<'static>,
    allow: Option<&'static str>,
}

impl Refused {
    pub fn reply(&self) -> Reply {
        if let (Error::VerbNotAllowed(verb), Some(_)) = (&self.error, self.allow)
            && verb == "OPTIONS"
        {
            // It asks just that.
            return Reply {
                status: 204,
                content_type: "application/json",
                retry_after: None,
                allow: self.allow,
                body: Vec::new(),
            };
        }
        let mut reply = self.responder.error_reply(&self.error);
        reply.allow = self.allow;
        if let Error::AgentNotFound { .. } = self.error {
            // The path is at fault here, so the answer is HTTP's own also where JSON-RPC is spoken.
            reply.status = 404;
        }
        reply
    }
}

impl Surface<'_> {
    /// For what goes wrong before the body is read: too large, not JSON by its type, broken off.
    pub fn responder(&self, head: &Head<'_>) -> Responder<'static> {
        match self {
            Surface::Call(endpoint) => endpoint.responder(head),
            Surface::AgentList | Surface::GatewayCard(_) => Responder::gateway(Asked::Send),
            Surface::Refused(refused) => refused.responder.clone(),
            Surface::Card { .. } | Surface::Health | Surface::Ready => unplaced(&VersionHeader::of(head)),
        }
    }
}

/// Where an operation is called.
pub enum Endpoint<'a> {
    JsonRpc(Mount),
    HttpJson(Route<'a>),
    Gateway(gateway::Route),
}

impl Endpoint<'_> {
    /// For what goes wrong before the body is read.
    pub fn responder(&self, head: &Head<'_>) -> Responder<'static> {
        match self {
            Endpoint::JsonRpc(mount) => mount.responder(head),
            Endpoint::HttpJson(route) => route.responder(),
            Endpoint::Gateway(route) => route.responder(),
        }
    }

    /// Reads one request; `body` is empty where there is none.
    pub fn decode<'b>(&self, head: &Head<'_>, body: &'b [u8], compat: Compat, agents: &dyn KnownAgents) -> Decoded<'b> {
        match self {
            Endpoint::JsonRpc(mount) => mount.decode(head, body, compat, agents),
            Endpoint::HttpJson(route) => route.decode(head, body, compat, agents),
            Endpoint::Gateway(route) => route.decode(head, body, agents),
        }
    }
}

pub fn locate<'a>(head: &Head<'a>, agents: &dyn KnownAgents) -> Surface<'a> {
    if let Some(below) = head.path.strip_prefix(gateway::BASE)
        && (below.is_empty() || below.starts_with('/'))
    {
        return at_gateway(head, below.strip_suffix('/').unwrap_or(below), agents);
    }
    let Some(below) = head.path.strip_prefix("/agents/") else {
        return at(head, head.path, None, agents);
    };
    let (id, path) = below.split_at(below.find('/').unwrap_or(below.len()));
    let id = percent::segment(id).unwrap_or_default();
    if id.is_empty() {
        return nothing_at(head);
    }
    match AgentId::parse(&*id) {
        Ok(agent) if agents.knows(&id) => at(head, path, Some(agent), agents),
        // Said in the shape of what would be there.
        _ => match at(head, path, None, agents) {
            Surface::Refused(nothing) if matches!(nothing.error, Error::PathNotFound(_)) => nothing_at(head),
            other => {
                refuse(Error::AgentNotFound { named: id.into_owned(), known: agents.ids() }, other.responder(head))
            }
        },
    }
}

/// `below` is what follows the gateway's base.
fn at_gateway<'a>(head: &Head<'a>, below: &'a str, agents: &dyn KnownAgents) -> Surface<'a> {
    let responder = || Responder::gateway(Asked::Send);
    let (agent, thing) = match gateway::find(head.verb, below) {
        None => return refuse(Error::PathNotFound(head.path.to_owned()), responder()),
        Some(Err(Error::VerbNotAllowed(_))) => {
            let is_action = below.ends_with("/message:send") || below.ends_with(":cancel");
            let allow = if is_action { "POST" } else { "GET, HEAD" };
            return wrong_verb(head, responder(), allow);
        }
        Some(Err(error)) => return refuse(error, responder()),
        Some(Ok(Named::List)) => return Surface::AgentList,
        Some(Ok(Named::Of { agent, thing })) => (agent, thing),
    };
    match (AgentId::parse(&*agent), thing) {
        (Ok(id), Thing::Card) if agents.knows(&agent) => Surface::GatewayCard(id),
        (Ok(id), Thing::Call(asked)) if agents.knows(&agent) => {
            Surface::Call(Endpoint::Gateway(gateway::Route { agent: id, asked }))
        }
        _ => refuse(Error::AgentNotFound { named: agent.into_owned(), known: agents.ids() }, responder()),
    }
}

/// `path` is what follows the agent.
fn at<'a>(head: &Head<'a>, path: &'a str, agent: Option<AgentId>, agents: &dyn KnownAgents) -> Surface<'a> {
    let reads = matches!(head.verb, "GET" | "HEAD");
    let place = match path.strip_suffix('/').unwrap_or(path) {
        "" if reads => return nothing_at(head),
        "" => Place::Root,
        "/a2a" => Place::A2a,
        "/a2a/jsonrpc" => Place::JsonRpc,
        "/v1/a2a" => Place::V1A2a,
        "/a2a/v1" => Place::Forced(ProtocolVersion::V1_0),
        "/a2a/v0.3" => Place::Forced(ProtocolVersion::V0_3),
        "/a2a/v0.1" => Place::Forced(ProtocolVersion::V0_1),
        "/.well-known/agent-card.json"
        | "/.well-known/agent.json"
        | "/a2a/.well-known/agent-card.json"
        | "/a2a/.well-known/agent.json"
        | "/a2a/card"
        | "/v1/a2a/.well-known/agent" => {
            let format = match VersionHeader::of(head).requested {
                Requested::Version(version) => Some(CardFormat::of(version)),
                Requested::Nothing | Requested::Unsupported => None,
            };
            return only_reading(head, Surface::Card { agent, format });
        }
        "/healthz" if agent.is_none() => return only_reading(head, Surface::Health),
        "/readyz" if agent.is_none() => return only_reading(head, Surface::Ready),
        path => return over_http_json(head, path, agent, agents),
    };
    let mount = Mount { agent, place };
    if head.verb == "POST" {
        Surface::Call(Endpoint::JsonRpc(mount))
    } else {
        wrong_verb(head, mount.responder(head), "POST")
    }
}

fn over_http_json<'a>(head: &Head<'a>, path: &'a str, agent: Option<AgentId>, agents: &dyn KnownAgents) -> Surface<'a> {
    let version = VersionHeader::of(head);
    let Some(Found { tenant, group, resource }) = http_json::find(path, &version) else {
        return nothing_at(head);
    };
    let responder = || Responder::http_json(group, None);
    let agent = match (tenant, agent) {
        (None, agent) => agent,
        (Some(tenant), None) if agents.knows(&tenant) => AgentId::parse(&*tenant).ok(),
        (Some(tenant), Some(agent)) if *tenant == *agent.as_str() => Some(agent),
        (Some(tenant), agent) => {
            let known = agent.map_or_else(|| agents.ids(), |agent| vec![agent]);
            return refuse(Error::AgentNotFound { named: tenant.into_owned(), known }, responder());
        }
    };
    if !group.serves(&version) {
        return refuse(version.not_supported(), responder());
    }
    // Whatever can be read can be asked for its head, but for what never ends.
    let reads =
        |verb: &str, operation: Operation| head.verb == "HEAD" && verb == "GET" && operation != Operation::Subscribe;
    match resource.takes.iter().find(|(verb, operation)| *verb == head.verb || reads(verb, *operation)) {
        Some((_, operation)) => Surface::Call(Endpoint::HttpJson(Route {
            agent,
            operation: *operation,
            group,
            task: resource.task,
            config: resource.config,
        })),
        None => wrong_verb(head, responder(), resource.allow()),
    }
}

fn only_reading<'a>(head: &Head<'_>, surface: Surface<'a>) -> Surface<'a> {
    if matches!(head.verb, "GET" | "HEAD") {
        return surface;
    }
    wrong_verb(head, unplaced(&VersionHeader::of(head)), "GET, HEAD")
}

fn nothing_at<'a>(head: &Head<'_>) -> Surface<'a> {
    let version = VersionHeader::of(head);
    // Below `/v1/a2a` is not 0.3's.
    let is_v0_3 =
        ["/v1/", "/a2a/rest/v1/"].iter().any(|base| head.path.starts_with(base)) && !head.path.starts_with("/v1/a2a");
    let responder =
        if is_v0_3 && !version.is_1_0() { Responder::http_json(EndpointGroup::V0_3, None) } else { unplaced(&version) };
    refuse(Error::PathNotFound(head.path.to_owned()), responder)
}

fn wrong_verb<'a>(head: &Head<'_>, responder: Responder<'static>, allow: &'static str) -> Surface<'a> {
    Surface::Refused(Refused { error: Error::VerbNotAllowed(head.verb.to_owned()), responder, allow: Some(allow) })
}

fn refuse<'a>(error: Error, responder: Responder<'static>) -> Surface<'a> {
    Surface::Refused(Refused { error, responder, allow: None })
}

/// Where no surface says how to speak, the version does.
fn unplaced(version: &VersionHeader<'_>) -> Responder<'static> {
    let group = if version.is_1_0() { EndpointGroup::V1 } else { EndpointGroup::Unversioned };
    Responder::http_json(group, None)
}

#[cfg(test)]
mod tests;

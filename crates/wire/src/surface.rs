//! Routing: what a request is for, from its verb, path and version alone.
//!
//! This is one pure function instead of a router with patterns, since `{id}:cancel`, tenant prefixes and the paths of
//! five versions do not fit patterns. Fixed paths are matched before anything that could be an id.

use sabir_model::{AgentId, Error};

use crate::gateway::{self, AgentResource, GatewayOperation, GatewayPath, GatewayRoute};
use crate::grpc::{self, GrpcPath, GrpcRoute, GrpcService};
use crate::http_json::{self, EndpointGroup, HttpJsonRoute, MatchedPath};
use crate::jsonrpc::{Mount, MountPath};
use crate::version::{Requested, VersionHeader};
use crate::{CardFormat, Compat, Decoded, Operation, ProtocolVersion, Reply, RequestHead, Responder, percent};

/// The agents of this server, which paths and bodies name.
pub trait KnownAgents {
    fn knows(&self, id: &str) -> bool;
    /// All of them, for the error that names them.
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
    /// The AI catalogue: the agents of this server, with the addresses of their cards.
    Catalogue,
    /// The agents behind the gateway.
    AgentList,
    /// The gateway's card of one agent.
    GatewayCard(AgentId),
    Health,
    Ready,
    /// A service of gRPC that is not A2A.
    GrpcService(GrpcService),
    Refused(Refusal),
}

/// There is nothing at this path, or not for this verb or version.
pub struct Refusal {
    pub error: Error,
    responder: Responder<'static>,
    allow: Option<&'static str>,
}

impl Refusal {
    pub fn reply(&self) -> Reply {
        if let (Error::VerbNotAllowed(verb), Some(_)) = (&self.error, self.allow)
            && verb == "OPTIONS"
        {
            // `OPTIONS` asks for the allowed verbs.
            return Reply {
                status: 204,
                content_type: "application/json",
                retry_after: None,
                allow: self.allow,
                grpc_status: None,
                body: Vec::new(),
            };
        }
        let mut reply = self.responder.error_reply(&self.error);
        reply.allow = self.allow;
        if let Error::AgentNotFound { .. } = self.error {
            // The path is wrong, so the status is that of HTTP, on JSON-RPC mounts too.
            reply.status = 404;
        }
        reply
    }
}

impl Surface<'_> {
    /// For what goes wrong before the body is read: too large, not JSON by its type, broken off.
    pub fn responder(&self, head: &RequestHead<'_>) -> Responder<'static> {
        match self {
            Surface::Call(endpoint) => endpoint.responder(head),
            Surface::AgentList | Surface::GatewayCard(_) => Responder::gateway(GatewayOperation::Send),
            Surface::Refused(refused) => refused.responder.clone(),
            Surface::GrpcService(_) => Responder::grpc(ProtocolVersion::V1_0, None),
            Surface::Card { .. } | Surface::Catalogue | Surface::Health | Surface::Ready => {
                responder_by_version(&VersionHeader::of(head))
            }
        }
    }
}

/// Where an operation is called.
pub enum Endpoint<'a> {
    JsonRpc(Mount),
    HttpJson(HttpJsonRoute<'a>),
    Gateway(GatewayRoute),
    Grpc(GrpcRoute),
}

impl Endpoint<'_> {
    /// For what goes wrong before the body is read.
    pub fn responder(&self, head: &RequestHead<'_>) -> Responder<'static> {
        match self {
            Endpoint::JsonRpc(mount) => mount.responder(head),
            Endpoint::HttpJson(route) => route.responder(),
            Endpoint::Gateway(route) => route.responder(),
            Endpoint::Grpc(route) => route.responder(),
        }
    }

    /// About how much memory it takes to decode this body, beside the body itself.
    pub fn weight(&self, body: &[u8]) -> usize {
        match self {
            // The text is read where it is.
            Endpoint::JsonRpc(_) | Endpoint::HttpJson(_) | Endpoint::Gateway(_) => 0,
            Endpoint::Grpc(route) => route.weight(body),
        }
    }

    /// Reads one request; `body` is empty where there is none. Of gRPC it is the message, without its prefix.
    pub fn decode<'b>(
        &self,
        head: &RequestHead<'_>,
        body: &'b [u8],
        compat: Compat,
        agents: &dyn KnownAgents,
    ) -> Decoded<'b> {
        match self {
            Endpoint::JsonRpc(mount) => mount.decode(head, body, compat, agents),
            Endpoint::HttpJson(route) => route.decode(head, body, compat, agents),
            Endpoint::Gateway(route) => route.decode(head, body, agents),
            Endpoint::Grpc(route) => route.decode(head, body, compat, agents),
        }
    }
}

pub fn locate<'a>(head: &RequestHead<'a>, agents: &dyn KnownAgents) -> Surface<'a> {
    if let Some(below) = head.path.strip_prefix(gateway::BASE)
        && (below.is_empty() || below.starts_with('/'))
    {
        return locate_gateway(head, below.strip_suffix('/').unwrap_or(below), agents);
    }
    if let Some(path) = grpc::match_path(head.path) {
        return locate_grpc(head, path);
    }
    let Some(below) = head.path.strip_prefix("/agents/") else {
        return locate_below_agent(head, head.path, None, agents);
    };
    let (id, path) = below.split_at(below.find('/').unwrap_or(below.len()));
    let id = percent::segment(id).unwrap_or_default();
    if id.is_empty() {
        return not_found(head);
    }
    match AgentId::parse(&*id) {
        Ok(agent) if agents.knows(&id) => locate_below_agent(head, path, Some(agent), agents),
        // The error has the shape that this path has below an agent that exists.
        _ => match locate_below_agent(head, path, None, agents) {
            Surface::Refused(nothing) if matches!(nothing.error, Error::PathNotFound(_)) => not_found(head),
            other => {
                refuse(Error::AgentNotFound { named: id.into_owned(), known: agents.ids() }, other.responder(head))
            }
        },
    }
}

fn locate_grpc<'a>(head: &RequestHead<'a>, path: GrpcPath) -> Surface<'a> {
    let surface = match path {
        GrpcPath::Call(route) => Surface::Call(Endpoint::Grpc(route)),
        GrpcPath::Service(service) => Surface::GrpcService(service),
        GrpcPath::UnknownMethod(version) => {
            refuse(Error::MethodNotFound(head.path.to_owned()), Responder::grpc(version, None))
        }
    };
    // Whoever looks with a browser is told in the words of HTTP.
    if head.verb == "POST" {
        surface
    } else {
        verb_not_allowed(head, responder_by_version(&VersionHeader::of(head)), "POST")
    }
}

/// `below` is what follows the gateway's base.
fn locate_gateway<'a>(head: &RequestHead<'a>, below: &'a str, agents: &dyn KnownAgents) -> Surface<'a> {
    let responder = || Responder::gateway(GatewayOperation::Send);
    let (agent, resource) = match gateway::match_path(head.verb, below) {
        None => return refuse(Error::PathNotFound(head.path.to_owned()), responder()),
        Some(Err(Error::VerbNotAllowed(_))) => {
            let is_action = below.ends_with("/message:send") || below.ends_with(":cancel");
            let allow = if is_action { "POST" } else { "GET, HEAD" };
            return verb_not_allowed(head, responder(), allow);
        }
        Some(Err(error)) => return refuse(error, responder()),
        Some(Ok(GatewayPath::AgentList)) => return Surface::AgentList,
        Some(Ok(GatewayPath::OfAgent { agent, resource })) => (agent, resource),
    };
    match (AgentId::parse(&*agent), resource) {
        (Ok(id), AgentResource::Card) if agents.knows(&agent) => Surface::GatewayCard(id),
        (Ok(id), AgentResource::Operation(operation)) if agents.knows(&agent) => {
            Surface::Call(Endpoint::Gateway(GatewayRoute { agent: id, operation }))
        }
        _ => refuse(Error::AgentNotFound { named: agent.into_owned(), known: agents.ids() }, responder()),
    }
}

/// `path` is what follows the agent.
fn locate_below_agent<'a>(
    head: &RequestHead<'a>,
    path: &'a str,
    agent: Option<AgentId>,
    agents: &dyn KnownAgents,
) -> Surface<'a> {
    let is_get = matches!(head.verb, "GET" | "HEAD");
    let mount_path = match path.strip_suffix('/').unwrap_or(path) {
        "" if is_get => return not_found(head),
        "" => MountPath::Root,
        "/a2a" => MountPath::A2a,
        "/a2a/jsonrpc" => MountPath::JsonRpc,
        "/v1/a2a" => MountPath::V1A2a,
        "/a2a/v1" => MountPath::Versioned(ProtocolVersion::V1_0),
        "/a2a/v0.3" => MountPath::Versioned(ProtocolVersion::V0_3),
        "/a2a/v0.1" => MountPath::Versioned(ProtocolVersion::V0_1),
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
            return only_get(head, Surface::Card { agent, format });
        }
        "/.well-known/ai-catalog.json" if agent.is_none() => return only_get(head, Surface::Catalogue),
        "/healthz" | "/health" if agent.is_none() => return only_get(head, Surface::Health),
        "/readyz" if agent.is_none() => return only_get(head, Surface::Ready),
        path => return locate_http_json(head, path, agent, agents),
    };
    let mount = Mount { agent, path: mount_path };
    if head.verb == "POST" {
        Surface::Call(Endpoint::JsonRpc(mount))
    } else {
        verb_not_allowed(head, mount.responder(head), "POST")
    }
}

fn locate_http_json<'a>(
    head: &RequestHead<'a>,
    path: &'a str,
    agent: Option<AgentId>,
    agents: &dyn KnownAgents,
) -> Surface<'a> {
    let version = VersionHeader::of(head);
    let Some(MatchedPath { tenant, group, resource }) = http_json::match_path(path, &version) else {
        return not_found(head);
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
    // HEAD is allowed wherever GET is, except for streams.
    let reads =
        |verb: &str, operation: Operation| head.verb == "HEAD" && verb == "GET" && operation != Operation::Subscribe;
    match resource.methods.iter().find(|(verb, operation)| *verb == head.verb || reads(verb, *operation)) {
        Some((_, operation)) => Surface::Call(Endpoint::HttpJson(HttpJsonRoute {
            agent,
            operation: *operation,
            group,
            task: resource.task,
            config: resource.config,
        })),
        None => verb_not_allowed(head, responder(), resource.allow()),
    }
}

fn only_get<'a>(head: &RequestHead<'_>, surface: Surface<'a>) -> Surface<'a> {
    if matches!(head.verb, "GET" | "HEAD") {
        return surface;
    }
    verb_not_allowed(head, responder_by_version(&VersionHeader::of(head)), "GET, HEAD")
}

fn not_found<'a>(head: &RequestHead<'_>) -> Surface<'a> {
    let version = VersionHeader::of(head);
    // `/v1/a2a` is a mount of its own, not a path of 0.3.
    let is_v0_3 =
        ["/v1/", "/a2a/rest/v1/"].iter().any(|base| head.path.starts_with(base)) && !head.path.starts_with("/v1/a2a");
    let responder = if is_v0_3 && !version.is_1_0() {
        Responder::http_json(EndpointGroup::V0_3, None)
    } else {
        responder_by_version(&version)
    };
    refuse(Error::PathNotFound(head.path.to_owned()), responder)
}

fn verb_not_allowed<'a>(head: &RequestHead<'_>, responder: Responder<'static>, allow: &'static str) -> Surface<'a> {
    Surface::Refused(Refusal { error: Error::VerbNotAllowed(head.verb.to_owned()), responder, allow: Some(allow) })
}

fn refuse<'a>(error: Error, responder: Responder<'static>) -> Surface<'a> {
    Surface::Refused(Refusal { error, responder, allow: None })
}

/// For requests outside of all endpoints: the version alone says how to answer.
fn responder_by_version(version: &VersionHeader<'_>) -> Responder<'static> {
    let group = if version.is_1_0() { EndpointGroup::V1 } else { EndpointGroup::Unversioned };
    Responder::http_json(group, None)
}

#[cfg(test)]
mod tests;

//! Cards: what the server says of itself, from what it really does.

mod catalogue;

use std::sync::Arc;

use http::request::Parts;
use http::{HeaderValue, Response, StatusCode, header};
use sabir_engine::{About, Engine, Hosted, Streaming};
use sabir_model::{
    AgentId, Call, Caller, Capabilities, Card, Error, Extension, Gateway, Interface, Provider, Skill,
    idempotency_extension,
};
use sabir_wire::gateway::{self, message_send_path, write_agent_list};
use sabir_wire::{CardFormat, KnownAgents, write_card};

use crate::app::CardSettings;
use crate::auth::Auth;
use crate::body::Body;
use crate::etag::{etag_of, matches_etag};
use crate::host::Authority;
use crate::scheme::Scheme;
use crate::signed_cards::{CardSigner, SignedCards};
use crate::visible_agents::VisibleAgents;

pub use catalogue::CatalogueAccess;

const JSON: &str = "application/json";

pub(crate) struct Cards {
    settings: CardSettings,
    engine: Engine,
    /// Where messages go that name no agent.
    default: Option<AgentId>,
    /// What callers must show.
    auth: Arc<Auth>,
    /// `None`: cards are not signed.
    signed: Option<SignedCards>,
}

impl Cards {
    pub(crate) fn new(
        engine: &Engine,
        settings: CardSettings,
        signer: Option<Arc<dyn CardSigner>>,
        auth: Arc<Auth>,
    ) -> Self {
        let default = engine.default_agent().cloned();
        let signed = signer.zip(settings.base.as_deref()).map(|(signer, base)| SignedCards::new(signer, base));
        Self { settings, engine: engine.clone(), default, auth, signed }
    }

    /// What the agents say of themselves now, sorted by id.
    fn agents(&self) -> impl Iterator<Item = (&AgentId, Arc<About>)> {
        self.engine.agents().map(|agent| (&agent.id, agent.about()))
    }

    /// The card of the server, or of one of its agents; `format` is what the client asks for.
    pub(crate) fn answer(
        &self,
        format: Option<CardFormat>,
        parts: &Parts,
        host: Option<Authority<'_>>,
        agent: Option<&AgentId>,
    ) -> Response<Body> {
        let format = format.unwrap_or(self.settings.default_format);
        // One that is named is known to whoever asks; `locate` has seen to that.
        let is_shown = |hosted: &Hosted| hosted.is_listed || agent.is_some();
        let card = self.card(&self.base(parts, host), agent, is_shown);
        let body = match &self.signed {
            Some(signed) => signed.write(card, format, agent),
            None => {
                let mut body = Vec::with_capacity(2048);
                write_card(&card, format, &mut body);
                body
            }
        };
        self.cached(parts, JSON, body)
    }

    /// The card that everybody may see.
    pub(crate) fn public(&self, base: &str, agent: Option<&AgentId>) -> Card {
        self.card(base, agent, |hosted| hosted.is_listed || agent.is_some())
    }

    /// The card of the agents that this caller may use.
    pub(crate) fn extended(&self, caller: &Caller, base: &str, agent: Option<&AgentId>) -> Result<Card, Error> {
        if let Some(agent) = agent.filter(|agent| !caller.may_read(agent)) {
            return Err(Error::Forbidden(format!("the credential lacks the scope read for agent {agent}")));
        }
        Ok(self.card(base, agent, |hosted| caller.may_read(&hosted.id)))
    }

    /// Whether whoever is called says that it knows this extension.
    pub(crate) fn declares(&self, call: &Call, uri: &str) -> bool {
        let agent = match call.agent() {
            Some(agent) => Some(agent),
            // A message without an agent goes to the default one; whatever else is asked may be about any.
            None if matches!(call, Call::Send(_)) => self.default.as_ref(),
            None => None,
        };
        let mut called = self.agents().filter(|(id, _)| agent.is_none_or(|agent| agent == *id));
        called.any(|(_, about)| about.extensions.iter().any(|extension| extension.uri == uri))
    }

    /// The agents behind the gateway.
    pub(crate) fn agent_list(&self, parts: &Parts, agents: &VisibleAgents<'_>) -> Response<Body> {
        let mut body = Vec::with_capacity(512);
        write_agent_list(agents.ids().iter(), &mut body);
        self.cached(parts, JSON, body)
    }

    /// An answer that the client may keep for a while, or has kept.
    fn cached(&self, parts: &Parts, content_type: &'static str, body: Vec<u8>) -> Response<Body> {
        let etag = etag_of("a2a-agents", &body);
        let is_known = matches_etag(&parts.headers, &etag);
        let mut response = Response::new(if is_known { Body::empty() } else { Body::from(body) });
        if is_known {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
        }
        let max_age = self.settings.max_age.as_secs();
        let headers = response.headers_mut();
        if let Ok(caching) = HeaderValue::try_from(format!("public, max-age={max_age}, must-revalidate")) {
            headers.insert(header::CACHE_CONTROL, caching);
        }
        headers.insert(header::VARY, HeaderValue::from_static("A2A-Version"));
        headers.insert(header::ETAG, etag);
        if !is_known {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        }
        response
    }

    /// Where the client reaches us.
    pub(crate) fn base(&self, parts: &Parts, host: Option<Authority<'_>>) -> String {
        if let Some(base) = &self.settings.base {
            return base.clone();
        }
        format!("{}://{}", Scheme::of(&parts.extensions), host.map_or("localhost", |host| host.text))
    }

    /// gRPC has no paths for agents. 1.0 names the agent in each request; 0.3 cannot, so it reaches the default one alone.
    fn grpc_interfaces(&self, base: &str, agent: Option<&AgentId>) -> Vec<Interface> {
        let Some(url) = self.settings.grpc.authority(base) else { return Vec::new() };
        let interface = |version: &str, tenant: Option<&AgentId>| Interface {
            url: url.clone(),
            binding: "GRPC".into(),
            version: version.into(),
            tenant: tenant.map(AgentId::to_string),
        };
        let mut interfaces = vec![interface("1.0", agent)];
        if agent.is_none() || agent == self.default.as_ref() {
            interfaces.push(interface("0.3", None));
        }
        interfaces
    }

    /// Shows those that pass `is_shown`.
    fn card(&self, base: &str, agent: Option<&AgentId>, is_shown: impl Fn(&Hosted) -> bool) -> Card {
        let settings = &self.settings;
        let is_wanted = |hosted: &&Hosted| agent.is_none_or(|agent| *agent == hosted.id) && is_shown(hosted);
        let shown = self.engine.agents().filter(is_wanted).map(|hosted| (&hosted.id, hosted.about()));
        let shown: Vec<(&AgentId, Arc<About>)> = shown.collect();
        let place = agent.map_or_else(|| base.to_owned(), |agent| format!("{base}/agents/{agent}"));
        // One agent speaks for itself; several are introduced by the server.
        let only = match shown.as_slice() {
            [(_, about)] => Some(about),
            _ => None,
        };
        // Whom messages reach that are sent to the card's address. What the card offers is what that one does; a list of
        // what others do would promise what is then refused.
        let reached = agent.or(self.default.as_ref());
        let reached = shown.iter().find(|(id, _)| Some(*id) == reached).or(shown.first()).map(|(_, about)| &**about);
        let of_server = |configured: &Option<String>| configured.clone().filter(|_| agent.is_none());
        Card {
            name: of_server(&settings.name).or(only.map(|about| about.name.clone())).unwrap_or_else(|| "Sabir".into()),
            description: of_server(&settings.description)
                .or(only.map(|about| about.description.clone()))
                .unwrap_or_else(|| "Agents behind one door, for every A2A client".into()),
            version: settings.version.clone(),
            provider: Some(Provider {
                organization: settings.organization.clone().unwrap_or_else(|| "Sabir".into()),
                url: settings.organization_url.clone().unwrap_or_else(|| base.to_owned()),
            }),
            documentation_url: settings.documentation_url.clone(),
            icon_url: settings.icon_url.clone(),
            interfaces: interfaces(&place, self.grpc_interfaces(base, agent)),
            capabilities: Capabilities {
                streaming: reached.map(|about| about.streaming == Streaming::Offered),
                push_notifications: Some(self.engine.offers_webhooks()),
                extended_card: Some(self.auth.is_required()),
                state_history: Some(true),
                extensions: extensions(&shown, reached),
            },
            security_schemes: self.auth.schemes(),
            security: self.auth.requirements(),
            input_modes: reached.map(|about| about.input_modes.clone()).unwrap_or_default(),
            output_modes: reached.map(|about| about.output_modes.clone()).unwrap_or_default(),
            skills: match only {
                Some(about) => about.skills.clone(),
                None => union(shown.iter().flat_map(|(_, about)| about.skills.iter().map(|skill| whole(skill, about)))),
            },
            signatures: Vec::new(),
            gateway: Some(Gateway {
                url: match shown.as_slice() {
                    [(id, _)] => message_send_path(id),
                    _ => gateway::BASE.into(),
                },
                agents: shown.iter().map(|(id, _)| id.to_string()).collect(),
            }),
        }
    }
}

/// Clients take the first interface of a binding, so 1.0 comes before 0.3, and the address that the card calls its own
/// before others that do the same.
fn interfaces(place: &str, grpc: Vec<Interface>) -> Vec<Interface> {
    let interface = |path: &str, binding: &str, version: &str| Interface {
        url: format!("{place}{path}"),
        binding: binding.into(),
        version: version.into(),
        tenant: None,
    };
    let (newest, older): (Vec<_>, Vec<_>) = grpc.into_iter().partition(|interface| interface.version == "1.0");
    let mut all = vec![interface("/a2a/jsonrpc", "JSONRPC", "1.0"), interface("/a2a/rest", "HTTP+JSON", "1.0")];
    all.extend(newest);
    all.extend([interface("/a2a/jsonrpc", "JSONRPC", "0.3"), interface("/a2a/rest", "HTTP+JSON", "0.3")]);
    all.extend(older);
    all.extend([interface("/a2a", "JSONRPC", "0.3"), interface("/", "JSONRPC", "0.3")]);
    all
}

/// Each once, and what this server itself can. Required is what the one who is reached requires.
fn extensions(shown: &[(&AgentId, Arc<About>)], reached: Option<&About>) -> Vec<Extension> {
    let is_required = |uri: &str| {
        let mut own = reached.into_iter().flat_map(|about| &about.extensions);
        own.any(|extension| extension.required && extension.uri == uri)
    };
    let mut all: Vec<Extension> = Vec::new();
    for extension in shown.iter().flat_map(|(_, about)| &about.extensions) {
        if !all.iter().any(|known| known.uri == extension.uri) {
            all.push(Extension { required: is_required(&extension.uri), ..extension.clone() });
        }
    }
    all.push(idempotency_extension());
    all
}

/// A skill that leaves its modes to its agent, on a card that speaks for several.
fn whole(skill: &Skill, about: &About) -> Skill {
    let or = |own: &[String], agents: &[String]| if own.is_empty() { agents.to_vec() } else { own.to_vec() };
    Skill {
        input_modes: or(&skill.input_modes, &about.input_modes),
        output_modes: or(&skill.output_modes, &about.output_modes),
        ..skill.clone()
    }
}

fn union<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut all = Vec::new();
    for item in items {
        if !all.contains(&item) {
            all.push(item);
        }
    }
    all
}

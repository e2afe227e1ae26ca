//! The AI catalogue at `/.well-known/ai-catalog.json`: one list by which programs find the agents of a server, and its MCP
//! server with the card of that.
//!
//! A server that is meant for everybody (it has a public address) shows the listed agents to everybody, pages of other
//! origins included. Elsewhere the catalogue is like any other call: it needs a credential where calls need one, and has the
//! agents that the caller may know of.

use http::request::Parts;
use http::{HeaderValue, Response, header};
use sabir_doors::mcp::{McpDoor, McpPlace};
use sabir_wire::{
    CATALOGUE_TYPE, Catalogue, CatalogueAgent, CatalogueHost, CatalogueMcpServer, KnownAgents, MCP_CARD_TYPE,
    MCP_SERVER_NAME, write_catalogue,
};

use super::Cards;
use crate::body::Body;
use crate::host::Authority;
use crate::mcp;
use crate::visible_agents::VisibleAgents;

/// Who may read the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CatalogueAccess {
    /// Everybody, without a credential and from pages of any origin.
    Everybody,
    /// Those who may call.
    #[default]
    Callers,
}

impl Cards {
    /// The catalogue for everybody, if there is one. `agents` are those that strangers may know of.
    pub(crate) fn public_catalogue(
        &self,
        parts: &Parts,
        host: Option<Authority<'_>>,
        agents: &VisibleAgents<'_>,
        door: Option<&McpDoor>,
    ) -> Option<Response<Body>> {
        self.is_for_everybody().then(|| for_everybody(self.catalogue(parts, host, agents, door)))
    }

    /// The card of the MCP server for everybody, if strangers may read the catalogue.
    pub(crate) fn public_mcp_card(
        &self,
        parts: &Parts,
        host: Option<Authority<'_>>,
        door: &McpDoor,
    ) -> Option<Response<Body>> {
        self.is_for_everybody().then(|| for_everybody(self.mcp_card(parts, host, door)))
    }

    fn is_for_everybody(&self) -> bool {
        self.settings.catalogue == CatalogueAccess::Everybody
    }

    /// The card of the MCP server, which says where it is and what it speaks.
    pub(crate) fn mcp_card(&self, parts: &Parts, host: Option<Authority<'_>>, door: &McpDoor) -> Response<Body> {
        let catalogue_host = self.catalogue_host();
        let place = McpPlace {
            url: &format!("{}{}", self.base(parts, host), mcp::PATH),
            domain: catalogue_host.domain.as_deref(),
            name: MCP_SERVER_NAME,
            title: &catalogue_host.name,
            website: catalogue_host.documentation_url.as_deref(),
        };
        self.cached(parts, MCP_CARD_TYPE, door.server_card(&place))
    }

    /// The catalogue of these agents, and of the MCP server if there is one.
    pub(crate) fn catalogue(
        &self,
        parts: &Parts,
        host: Option<Authority<'_>>,
        agents: &VisibleAgents<'_>,
        door: Option<&McpDoor>,
    ) -> Response<Body> {
        let ids = agents.ids();
        let shown = self.agents().filter(|(id, _)| ids.contains(id));
        let catalogue_host = self.catalogue_host();
        let catalogue = Catalogue {
            base: self.base(parts, host),
            mcp: door.map(|_| CatalogueMcpServer {
                card_path: mcp::CARD_PATH.to_owned(),
                name: catalogue_host.name.clone(),
                description: McpDoor::DESCRIPTION.to_owned(),
            }),
            host: catalogue_host,
            agents: shown
                .map(|(id, about)| CatalogueAgent {
                    id: id.clone(),
                    name: about.name.clone(),
                    description: about.description.clone(),
                })
                .collect(),
        };
        let mut body = Vec::with_capacity(1024);
        write_catalogue(&catalogue, &mut body);
        self.cached(parts, CATALOGUE_TYPE, body)
    }

    fn catalogue_host(&self) -> CatalogueHost {
        let settings = &self.settings;
        let name = settings.organization.as_ref().or(settings.name.as_ref());
        // Only an address that the operator has set is one that others can verify.
        let base = settings.base.as_deref().filter(|_| self.is_for_everybody());
        CatalogueHost {
            name: name.cloned().unwrap_or_else(|| "Sabir".into()),
            domain: base.and_then(domain_of).map(str::to_owned),
            documentation_url: settings.documentation_url.clone(),
            logo_url: settings.icon_url.clone(),
        }
    }
}

/// Pages of all origins may read it.
fn for_everybody(mut response: Response<Body>) -> Response<Body> {
    response.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    response
}

/// `None` for IP addresses and for this machine.
fn domain_of(base: &str) -> Option<&str> {
    let (_, place) = base.split_once("://")?;
    Authority::parse(place.split('/').next()?)?.domain()
}

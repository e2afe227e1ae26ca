//! The AI catalogue at `/.well-known/ai-catalog.json`: one list by which programs find the agents of a server.
//!
//! A server that is meant for everybody (it has a public address) shows the listed agents to everybody, pages of other
//! origins included. Elsewhere the catalogue is like any other call: it needs a credential where calls need one, and has the
//! agents that the caller may know of.

use http::request::Parts;
use http::{HeaderValue, Response, header};
use sabir_wire::{CATALOGUE_TYPE, Catalogue, CatalogueAgent, CatalogueHost, KnownAgents, write_catalogue};

use super::Cards;
use crate::body::Body;
use crate::host::Authority;
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
    ) -> Option<Response<Body>> {
        if self.settings.catalogue != CatalogueAccess::Everybody {
            return None;
        }
        let mut response = self.catalogue(parts, host, agents);
        response.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
        Some(response)
    }

    /// The catalogue of these agents.
    pub(crate) fn catalogue(
        &self,
        parts: &Parts,
        host: Option<Authority<'_>>,
        agents: &VisibleAgents<'_>,
    ) -> Response<Body> {
        let ids = agents.ids();
        let shown = self.agents().filter(|(id, _)| ids.contains(id));
        let catalogue = Catalogue {
            base: self.base(parts, host),
            host: self.catalogue_host(),
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
        let base = settings.base.as_deref().filter(|_| settings.catalogue == CatalogueAccess::Everybody);
        CatalogueHost {
            name: name.cloned().unwrap_or_else(|| "Sabir".into()),
            domain: base.and_then(domain_of).map(str::to_owned),
            documentation_url: settings.documentation_url.clone(),
            logo_url: settings.icon_url.clone(),
        }
    }
}

/// `None` for IP addresses and for this machine.
fn domain_of(base: &str) -> Option<&str> {
    let (_, place) = base.split_once("://")?;
    Authority::parse(place.split('/').next()?)?.domain()
}

//! The card of a remote agent, issued again as ours.
//!
//! Name, skills and modes are the remote agent's; addresses, security and signature are this server's. What the remote
//! card said of itself stays as provenance: its digest and its signatures, under an extension of its own. Where it came from is no
//! business of callers.

use sabir_engine::About;
use sabir_model::{Extension, IDEMPOTENCY_KEY, Json, base64url};
use sabir_outbound::cards::FetchedCard;
use sabir_outbound::sha256;
use serde::Serialize;

/// Where the card of an agent came from.
const UPSTREAM_CARD: &str = "urn:sabir:a2a:ext:upstream-card-v1";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Provenance<'a> {
    /// Of the card as it was served, in base64url.
    sha256: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    signatures: Vec<Signature<'a>>,
}

#[derive(Serialize)]
struct Signature<'a> {
    protected: &'a str,
    signature: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    header: Option<&'a Json>,
}

/// As long as nothing is known of it.
pub(super) fn unknown() -> About {
    About::new("", "A remote A2A agent")
}

pub(super) fn of(fetched: &FetchedCard) -> About {
    let card = &fetched.card;
    let mut about = About::new(&card.name, &card.description);
    if !card.version.is_empty() {
        about = about.version(&card.version);
    }
    about.skills.clone_from(&card.skills);
    for skill in &mut about.skills {
        // What the remote agent asks of its callers is for this server to show.
        skill.security.clear();
    }
    if !card.input_modes.is_empty() {
        about.input_modes.clone_from(&card.input_modes);
    }
    if !card.output_modes.is_empty() {
        about.output_modes.clone_from(&card.output_modes);
    }
    let theirs = |extension: &&Extension| extension.uri != IDEMPOTENCY_KEY && extension.uri != UPSTREAM_CARD;
    about.extensions = card.capabilities.extensions.iter().filter(theirs).cloned().collect();
    about.extensions.push(provenance(fetched));
    about
}

fn provenance(fetched: &FetchedCard) -> Extension {
    let signatures = fetched.card.signatures.iter().map(|signature| Signature {
        protected: &signature.protected,
        signature: &signature.signature,
        header: signature.header.as_ref(),
    });
    let provenance = Provenance {
        sha256: base64url(&sha256(fetched.text.as_bytes())),
        provider: fetched.card.provider.as_ref().map(|provider| provider.organization.as_str()),
        signatures: signatures.collect(),
    };
    Extension {
        uri: UPSTREAM_CARD.to_owned(),
        description: Some("The card of the agent that does the work, as it was served to this server".to_owned()),
        required: false,
        params: Json::of(&provenance).ok(),
    }
}

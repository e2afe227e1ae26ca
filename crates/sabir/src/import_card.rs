//! `sabir import-card`: the `[[agent]]` table for a remote agent, made from its card.
//!
//! The card is a stranger's. Its words stand in comments and strings that they cannot leave (`toml_text`), and nothing that it
//! says makes Sabir show a credential to somebody: those lines are commented out, for the operator to look at.

mod agent_table;

use sabir_outbound::cards::CardError;
use sabir_outbound::remote::{Discovered, RemoteError};

use crate::config::{self, Problems, RemoteConfig};
use crate::machine::Machine;
use crate::terminal_text::visible;
use crate::upstream;

pub enum Imported {
    Table {
        text: String,
        notes: Vec<String>,
    },
    /// There is no agent, or no card of it.
    Unreachable(String),
}

/// `id` is what the operator wants it to be.
pub fn run(config: &RemoteConfig, id: Option<&str>, machine: &Machine) -> anyhow::Result<Imported> {
    if let Some(words) = id.and_then(|id| config::check_agent_id(id).err()) {
        return Err(Problems(vec![format!("--id {words}")]).into());
    }
    match upstream::discover(config, machine)? {
        Ok(found) => {
            let id = id.map_or_else(|| agent_id(&found, config), str::to_owned);
            let notes = found.notes.iter().map(|note| visible(note)).collect();
            Ok(Imported::Table { text: agent_table::table(&found, config, &id), notes })
        }
        Err(error) if is_absent(&error) => Ok(Imported::Unreachable(visible(&error.to_string()))),
        Err(error) => Err(anyhow::anyhow!("{}{}", visible(&error.to_string()), remedy(&error))),
    }
}

fn remedy(error: &RemoteError) -> &'static str {
    match error {
        RemoteError::Card(CardError::Status { status, .. }) if matches!(status.as_u16(), 401 | 403) => {
            "; show it a credential with SABIR_UPSTREAM_TOKEN, --bearer or --api-key"
        }
        _ => "",
    }
}

fn is_absent(error: &RemoteError) -> bool {
    let has_no_card = match error {
        RemoteError::Card(CardError::NotFound(_)) => true,
        RemoteError::Card(CardError::Status { status, .. }) => status.is_server_error(),
        _ => false,
    };
    error.is_unreachable() || has_no_card
}

/// A valid id from the name on the card, or from the host.
fn agent_id(found: &Discovered, config: &RemoteConfig) -> String {
    let name = found.card.as_ref().map(|fetched| fetched.card.name.as_str()).unwrap_or_default();
    id_of(name, config)
}

fn id_of(name: &str, config: &RemoteConfig) -> String {
    let host = config.url.as_deref().and_then(config::host_of_url).unwrap_or_default();
    let candidates = [words_of(name), words_of(&format!("{name} agent")), words_of(host), "remote".to_owned()];
    let is_valid = |id: &&String| config::check_agent_id(id).is_ok();
    candidates.iter().find(is_valid).cloned().unwrap_or_default()
}

/// `harbour-desk` of `Harbour Desk (north)!`
fn words_of(name: &str) -> String {
    let parts = name.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|part| !part.is_empty());
    let joined = parts.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-");
    joined.chars().take(40).collect::<String>().trim_end_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(url: &str) -> RemoteConfig {
        RemoteConfig { url: Some(url.to_owned()), ..RemoteConfig::default() }
    }

    #[test]
    fn an_id_is_made_from_the_name_or_the_host() {
        let long = "word ".repeat(30);
        for (name, expected) in [
            ("Harbour Desk", "harbour-desk"),
            ("  GPT-4 (north)! ", "gpt-4-north"),
            ("admin", "admin-agent"),
            ("Agent", "agent-agent"),
            ("../../etc", "etc"),
            ("代理", "a-example"),
            ("", "a-example"),
            (&long, "word-word-word-word-word-word-word-word"),
        ] {
            assert_eq!(id_of(name, &config("https://a.example")), expected, "{name}");
        }
        assert_eq!(id_of("", &config("https://[::]")), "remote");
    }
}

//! Which A2A server a command talks to, and how: flags that all clients have.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use http::{HeaderName, HeaderValue};
use sabir_wire::{Binding, ProtocolVersion};

/// Which server, and what it is shown.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Server")]
pub struct ServerName {
    /// The server, instead of a URL before the other words: a URL, a host, or the URL of a card [env: A2ACLI_AGENT_CARD]
    #[arg(short = 'a', long, value_name = "REF")]
    pub agent_card: Option<String>,

    /// An agent of a Sabir: the same as URL/agents/ID
    #[arg(long, value_name = "ID", value_parser = agent)]
    pub agent: Option<String>,

    /// Without a server: the configuration of the local one, instead of ./sabir.toml
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// The bearer token to show. Rather in the environment: others see command lines [env: SABIR_TOKEN, A2ACLI_BEARER]
    #[arg(long, visible_alias = "token", value_name = "TOKEN")]
    pub bearer: Option<String>,

    /// The API key to show, where the card wants it, or else as X-API-Key [env: A2ACLI_API_KEY]
    #[arg(long, value_name = "KEY")]
    pub api_key: Option<String>,

    /// A header that every request gets, such as x-trace-id:abc; may be repeated
    #[arg(long, value_name = "NAME:VALUE", value_parser = service_parameter)]
    pub svc_param: Vec<(HeaderName, HeaderValue)>,
}

/// How the server is spoken to, where its card does not say it or is wrong.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Protocol")]
pub struct ProtocolOptions {
    /// Speak this version, instead of the newest that the card names
    #[arg(long, value_name = "VERSION", value_parser = PossibleValuesParser::new(["1.0", "0.3", "0.2", "0.1"])
        .map(|name| ProtocolVersion::parse(&name).expect("each of them is a version")))]
    pub a2a_version: Option<ProtocolVersion>,

    /// Prefer this binding; may be repeated, the best first
    #[arg(long, value_name = "BINDING", value_parser = PossibleValuesParser::new(["jsonrpc", "http+json", "grpc"])
        .map(|name| Binding::parse(&name).expect("each of them is a binding")))]
    pub transport: Vec<Binding>,

    /// Where the card is, if it is not at one of the well-known places
    #[arg(long, value_name = "URL")]
    pub card_url: Option<String>,

    /// Where calls go, instead of where the card says
    #[arg(long, value_name = "URL")]
    pub endpoint: Option<String>,

    /// The tenant to name, instead of the one of the card
    #[arg(long, value_name = "ID")]
    pub tenant: Option<String>,

    /// Show on stderr what goes over the wire, but for credentials
    #[arg(long)]
    pub raw: bool,
}

/// It becomes a part of a path.
fn agent(text: &str) -> Result<String, String> {
    let is_id = !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
        && !text.starts_with('.');
    if is_id { Ok(text.to_owned()) } else { Err("not the id of an agent".to_owned()) }
}

/// Its value may be a secret, so it is treated as one.
fn service_parameter(text: &str) -> Result<(HeaderName, HeaderValue), String> {
    let (name, value) = text.split_once(':').ok_or("write it as NAME:VALUE")?;
    let name = HeaderName::try_from(name.trim()).map_err(|_| "the name cannot be that of a header")?;
    let mut value = HeaderValue::try_from(value.trim()).map_err(|_| "a header cannot carry this value")?;
    value.set_sensitive(true);
    Ok((name, value))
}

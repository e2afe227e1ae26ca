//! The command line of `card`.

use clap::Args;

use super::ServerName;
use crate::exit::Exit;

/// The flags of `card`.
#[derive(Debug, Clone, Args)]
pub struct CardOptions {
    /// The server, such as https://agents.example.com, or its card; without one, the local server
    pub url: Option<String>,

    /// Verify the signatures of the card
    #[arg(long)]
    pub verify: bool,

    /// The key set (JWKS) that you trust: a URL or a file
    #[arg(long, value_name = "URL|FILE", requires = "verify")]
    pub jwks: Option<String>,

    /// Print JSON on a terminal too
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub server: ServerName,
}

/// Below the flags of `card`.
pub fn card_help() -> String {
    format!("{CARD_HELP}\n\n{}", Exit::help())
}

const CARD_HELP: &str = "Examples:
  sabir card
  sabir card http://127.0.0.1:41242
  sabir card https://agents.example.com --verify
  sabir card https://agents.example.com --verify --jwks company-keys.json
  sabir card https://agents.example.com | jq .card.skills

URL is a server or a host, or the card itself. On a terminal it prints lines to read, in a pipe one JSON object: `url`, `card`, and with
--verify also `verified` and `signatures`.

With --verify each signature is valid, invalid, or made with a key that is not known. The keys come from --jwks, or else from
where the signature says (jku), if that is the same server; a key set on another server is used only if --jwks names it. The
exit code is 0 only if there is a signature and all are valid. A signature covers what clients of one protocol version read
of the card; which one is said.";

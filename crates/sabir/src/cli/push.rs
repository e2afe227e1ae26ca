//! The command line of `push`.

use clap::{Args, Subcommand};

use super::RunningServer;

#[derive(Debug, Clone, Subcommand)]
pub enum PushCommand {
    /// List deliveries: those that are still tried, then those that were given up
    List {
        /// Only those of this state
        #[arg(long, value_name = "STATE", value_parser = ["pending", "given-up"])]
        state: Option<String>,
        #[command(flatten)]
        server: RunningServer,
    },
    /// Show one delivery
    Show {
        #[arg(value_name = "ID", value_parser = delivery_id)]
        id: String,
        #[command(flatten)]
        server: RunningServer,
    },
    /// Try deliveries again now
    Retry(DeliveryIds),
    /// Drop deliveries: a given-up one, or all that the webhook of a pending one has to send now
    Drop(DeliveryIds),
}

#[derive(Debug, Clone, Args)]
pub struct DeliveryIds {
    /// Such as p12 or g7
    #[arg(value_name = "ID", required = true, value_parser = delivery_id)]
    pub ids: Vec<String>,
    #[command(flatten)]
    pub server: RunningServer,
}

/// It becomes a part of a path.
fn delivery_id(text: &str) -> Result<String, String> {
    let number = text.strip_prefix(['p', 'g']).unwrap_or_default();
    match !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) {
        true => Ok(text.to_owned()),
        false => Err("ids are such as p12 (pending) and g7 (given up)".to_owned()),
    }
}

/// Below the commands of `push`.
pub const PUSH_HELP: &str = "Examples:
  sabir push list
  sabir push list --state given-up
  sabir push show g7
  sabir push retry g7
  sabir push drop p12
  sabir push list | jq -r '.[] | select(.state == \"given-up\") | .id' | xargs sabir push retry

A delivery is pending (p12) while it is tried, and given up (g7) after push.give_up_after. A given-up one
stays until it is delivered after a retry, until somebody drops it, or until its task or its webhook is deleted.

The server is the one that runs with the store of this folder or of --config, whatever its address; --url names another. One
that asks for credentials wants a token with the scope admin (SABIR_TOKEN); others answer to programs on their own machine only.
On a terminal a table or lines are printed, in a pipe JSON.";

//! The command line of `key` and `token`, which make secrets.

use clap::Subcommand;

#[derive(Debug, Clone, Subcommand)]
pub enum KeyCommand {
    /// Print a new random key
    #[command(after_help = "Examples:
  sabir key new
  export SABIR_STORE_KEY=$(sabir key new --plain)
  export SABIR_PUSH_SIGNING_KEY=$(sabir key new --signing --plain)
  sabir key new --signing | jq .jwks
  export SABIR_CARD_SIGNING_KEY=$(sabir key new --card --plain)

Without a flag it is a key for store.key, which encrypts the secrets of webhooks in the store. With --signing it is one
for push.signing_key, which deliveries are signed with, and with --card one for card.signing_key, which cards are signed
with. Nothing is stored: who has the output has the only copy.

On a terminal it also prints what to do with it, in a pipe one JSON object.")]
    New {
        /// A key to sign deliveries with
        #[arg(long)]
        signing: bool,
        /// A key to sign cards with
        #[arg(long, conflicts_with = "signing")]
        card: bool,
        /// The algorithm that cards are signed with
        #[arg(long, value_name = "ALG", requires = "card", default_value = "es256", value_parser = ["es256", "eddsa"])]
        alg: String,
        /// Print the key alone
        #[arg(long)]
        plain: bool,
    },
}

#[derive(Debug, Clone, Subcommand)]
pub enum TokenCommand {
    /// Print a new token, and the table of sabir.toml that lets it in
    #[command(after_help = "Examples:
  sabir token new alice
  sabir token new ci --scope run:coder --scope read
  sabir token new ops --scope admin
  sabir token new --api-key old-client

Scopes: run (send messages, cancel, set webhooks, and read), read (see own tasks), approve (answer questions of agents whose
approver is approve), admin (everything, with everybody's tasks, and admin calls). run:coder is for one agent alone. Without
--scope it allows run and read.

Nothing is stored: who has the output has the only copy of the token. The server knows its hash.")]
    New {
        /// Whose it is; tasks belong to the subject
        subject: String,
        /// The organisation of the subject
        #[arg(long, value_name = "NAME")]
        tenant: Option<String>,
        /// What it allows; may be repeated
        #[arg(long = "scope", value_name = "SCOPE")]
        scopes: Vec<String>,
        /// A key for the header X-API-Key instead of a bearer token
        #[arg(long)]
        api_key: bool,
    },
    /// Print the hash of a token that is read from standard input
    Hash,
}

//! The command line of `tasks`.

use clap::{Args, Subcommand};

use super::RunningServer;

#[derive(Debug, Clone, Subcommand)]
pub enum TasksCommand {
    /// Give all tasks of an owner to another
    #[command(after_help = "Examples:
  sabir tasks assign --from anonymous --to token:alice
  sabir tasks assign --from token:bob --to https://idp.example.com#bob

Tasks from before there were credentials belong to anonymous: only admins see them until they are assigned. A subject is
qualified by who vouches for it: token:NAME, key:NAME, cert:URI, or the issuer, # and the subject. Tasks that are at work stay,
and so do those whose id the new owner has already. A server that asks for credentials wants a token with the scope admin
(SABIR_TOKEN).")]
    Assign(AssignOptions),
}

#[derive(Debug, Clone, Args)]
pub struct AssignOptions {
    /// Whose tasks, such as token:bob or anonymous
    #[arg(long, value_name = "SUBJECT")]
    pub from: String,
    /// The tenant of that subject
    #[arg(long, value_name = "NAME")]
    pub from_tenant: Option<String>,
    /// Who gets them
    #[arg(long, value_name = "SUBJECT")]
    pub to: String,
    /// The tenant of that subject
    #[arg(long, value_name = "NAME")]
    pub to_tenant: Option<String>,
    #[command(flatten)]
    pub server: RunningServer,
}

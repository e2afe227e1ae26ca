//! The command line of `audit`.

use std::time::Duration;

use clap::Args;
use clap::builder::PossibleValuesParser;
use sabir_engine::AuditAction;
use sabir_model::Timestamp;

use super::RunningServer;
use crate::config::parse_duration;

/// The flags of `audit`.
#[derive(Debug, Clone, Args)]
pub struct AuditOptions {
    /// Only what this caller did: its subject such as token:alice, or subject@tenant
    #[arg(long, value_name = "SUBJECT")]
    pub subject: Option<String>,

    /// Only what was done to this task
    #[arg(long, value_name = "ID")]
    pub task: Option<String>,

    /// Only this action
    #[arg(long, value_name = "ACTION", value_parser = PossibleValuesParser::new(AuditAction::ALL.map(AuditAction::name)))]
    pub action: Option<String>,

    /// How far to look back: a duration such as 1h or 7d, a time such as 2026-05-01T12:00:00Z, or all
    #[arg(long, value_name = "WHEN", default_value = "24h", value_parser = since)]
    pub since: Since,

    /// Go on and print what is recorded from now on, until Ctrl-C
    #[arg(long, short)]
    pub follow: bool,

    #[command(flatten)]
    pub server: RunningServer,
}

/// How far `audit` looks back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    /// To the first entry.
    Begin,
    Ago(Duration),
    Time(Timestamp),
}

pub fn since(text: &str) -> Result<Since, String> {
    if text == "all" {
        return Ok(Since::Begin);
    }
    let time = Timestamp::parse(text).map(Since::Time);
    let since = time.or_else(|| parse_duration(text).map(Since::Ago));
    since.ok_or_else(|| "expected a duration such as 1h or 7d, a time such as 2026-05-01T12:00:00Z, or all".to_owned())
}

/// Below the flags of `audit`.
pub const AUDIT_HELP: &str = "Examples:
  sabir audit
  sabir audit --since 90d --task 0197f3c2-6b1e-7c3a-9f10-2d5c1b7a4e11
  sabir audit --subject token:alice --action cancel --since all
  sabir audit --follow
  sabir audit --since 7d | jq -r 'select(.outcome != \"ok\") | [.time, .subject, .action, .task] | @tsv'

Recorded are messages (create, message, answer), cancel, webhook-set, webhook-delete, delivery-retry, delivery-drop, assign and backup; whether they were
done (ok) or refused because the caller lacks the right; and who looked at tasks of other owners (read, list). An entry never has the words
of a message. Nothing changes or deletes an entry but its age and the number of entries: audit.keep and audit.max_entries.

The server is the one that runs with the store of this folder or of --config, whatever its address; --url names another. One
that asks for credentials wants a token with the scope admin (SABIR_TOKEN); it keeps an audit log unless audit.enabled is false. Others
answer to programs on their own machine only, and keep one if audit.enabled is true. On a terminal a table is printed, in a pipe one JSON object
per line; the newest comes last.";

//! The command line. Values are taken as text here; the settings table says what they mean, so that a flag, a
//! variable and a file are judged by the same words.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand};
use sabir_bench::{Dialect, Workload};
use sabir_engine::AuditAction;
use sabir_model::Timestamp;

use crate::config::parse_duration;

#[derive(Debug, Parser)]
#[command(
    name = "sabir",
    version,
    about = "Puts any agent on the A2A network, for clients of every protocol version",
    arg_required_else_help = true,
    subcommand_required = true,
    after_help = "Examples:
  sabir serve                        the demo agent on 127.0.0.1:41242
  sabir serve --agent claude-code    Claude Code, in the folder where you are
  sabir serve --config sabir.toml    the agents of a file
  sabir agents                       what is configured, and what is installed here
  sabir agents --check               whether the configured programs really answer
  sabir config                       what would be used, and where it is set
  sabir push list                    webhooks that could not be delivered yet, or not at all
  sabir audit                        who did what to which task, of the last day
  sabir key new                      a key that encrypts the secrets of webhooks
  sabir card https://example.com     what an A2A server says of itself, and with --verify who signed it
  sabir bench http://127.0.0.1:41242 how fast a server is, and whether it is right

Exit codes: 0 all went well, 1 something failed, 2 the command line or the configuration is wrong."
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: CliCommand,
}

#[derive(Debug, Subcommand)]
pub enum CliCommand {
    /// Run the server until it gets SIGTERM or Ctrl-C
    #[command(after_help = "Examples:
  sabir serve
  sabir serve --agent claude-code
  sabir serve --port 7870 --store sqlite:tasks.db
  sabir serve --listen 127.0.0.1:41242 --listen '[::1]:41242'
  sabir serve --dev-tls
  sabir serve --listen 0.0.0.0:80 --allow-open --public-url https://agents.example.com

Without --config the file sabir.toml of the working directory is used, if there is one. Flags win over
the environment (SABIR_LISTEN, SABIR_STORE, ...), and the environment wins over the file.")]
    Serve(CliOptions),
    /// Print the settings that serve would use, and where each comes from
    #[command(after_help = "Examples:
  sabir config
  sabir config --config staging.toml
  SABIR_LISTEN=:7870 sabir config | jq -c '.[] | select(.source != \"default\")'
  sabir config --schema > sabir.schema.json

On a terminal it prints lines to read, in a pipe one JSON array. It takes the same flags as serve.

With --schema it prints the JSON Schema of sabir.toml instead. Editors complete and check a file whose first line
is `#:schema ./sabir.schema.json`.")]
    Config(ConfigOptions),
    /// List the agents that are configured and the programs that are installed
    #[command(after_help = "Examples:
  sabir agents
  sabir agents --config staging.toml
  sabir agents --check
  sabir agents --check coder
  sabir agents | jq -r '.[] | select(.list == \"known\" and .ready) | .kind'

First come the agents that serve would run: id, kind, mode, program, workspace, and what happens when a program
wants permission to use a tool. Then come the programs that sabir knows by name, with path and version; each that is
found is run with --version, for at most 10 seconds. Nothing is asked of the network.

On a terminal it prints tables, in a pipe one JSON array; `list` is \"configured\" or \"known\", and `why` says what
is missing where `ready` is false. It takes the same flags as serve. The exit code is 0, ready or not.

With --check each configured program is started once, and asked for a word as a caller would ask it, with no
permission to use a tool. That takes up to a minute and costs what the word costs. What is wrong is told in plain
words, with the remedy; the exit code is 1 if any program does not answer.")]
    Agents(AgentsOptions),
    /// See, retry and drop deliveries of webhooks at a running server
    #[command(
        subcommand,
        after_help = "Examples:
  sabir push list
  sabir push list --state given-up
  sabir push show g7
  sabir push retry g7
  sabir push drop p12
  sabir push list | jq -r '.[] | select(.state == \"given-up\") | .id' | xargs sabir push retry

A delivery is pending (p12) while it is tried, and given up (g7) after push.give_up_after. A given-up one
stays until it is delivered after a retry, until somebody drops it, or until its task or its webhook is deleted.

The server is the one that serve would start here: it is asked at the first address of server.listen, or at --url. One that
asks for credentials wants a token with the scope admin (SABIR_TOKEN); others answer to programs on their own machine only. On
a terminal a table or lines are printed, in a pipe JSON."
    )]
    Push(PushCommand),
    /// Show the card of an A2A server, and verify its signatures
    #[command(after_help = "Examples:
  sabir card http://127.0.0.1:41242
  sabir card https://agents.example.com --verify
  sabir card https://agents.example.com --verify --jwks company-keys.json
  sabir card https://agents.example.com | jq .card.skills

URL is a server, or the card itself. On a terminal it prints lines to read, in a pipe one JSON object: `url`, `card`, and with
--verify also `verified` and `signatures`.

With --verify each signature is valid, invalid, or made with a key that is not known. The keys come from --jwks, or else from
where the signature says (jku), if that is the same server; a key set on another server is used only if --jwks names it. The
exit code is 0 only if there is a signature and all are valid. A signature covers what clients of one protocol version read
of the card; which one is said.")]
    Card(CardOptions),
    /// Show who did what to which task, at a running server
    #[command(after_help = "Examples:
  sabir audit
  sabir audit --since 90d --task 0197f3c2-6b1e-7c3a-9f10-2d5c1b7a4e11
  sabir audit --subject token:alice --action cancel --since all
  sabir audit --follow
  sabir audit --since 7d | jq -r 'select(.outcome != \"ok\") | [.time, .subject, .action, .task] | @tsv'

Recorded are messages (create, message, answer), cancel, webhook-set, webhook-delete, delivery-retry, delivery-drop and assign; whether they were
done (ok) or refused because the caller lacks the right; and who looked at tasks of other owners (read, list). An entry never has the words
of a message. Nothing changes or deletes an entry but its age and the number of entries: audit.keep and audit.max_entries.

The server is the one that serve would start here: it is asked at the first address of server.listen, or at --url. One that
asks for credentials wants a token with the scope admin (SABIR_TOKEN); it keeps an audit log unless audit.enabled is false. Others answer
to programs on their own machine only, and keep one if audit.enabled is true. On a terminal a table is printed, in a pipe one JSON object
per line; the newest comes last.")]
    Audit(AuditOptions),
    /// Manage tasks at a running server
    #[command(subcommand)]
    Tasks(TasksCommand),
    /// Make keys
    #[command(subcommand)]
    Key(KeyCommand),
    /// Make tokens for callers
    #[command(subcommand)]
    Token(TokenCommand),
    /// Measure an A2A server, and check every reply of it
    #[command(after_help = "Examples:
  sabir bench http://127.0.0.1:41242
  sabir bench http://127.0.0.1:41242 --workload stream --chunks 1000 --connections 4
  sabir bench http://127.0.0.1:41242 --workload open-streams --connections 2000 --pid $(pidof sabir)
  sabir bench http://127.0.0.1:9999 --dialect 0.3 --seconds 10 | jq .per_second

Workloads:
  send          a message and its answer; at a gateway a message, and all runs are asked for at the end
  get           tasks that have ended, by id
  get-live      tasks that work while their stream is read, by id
  list          pages of 50 tasks, through the whole list (dialects 1.0 and rest)
  list-newest   the first page of 50 tasks, again and again (dialects 1.0 and rest)
  stream        a message whose answer comes in chunks; counts events
  fanout        all readers of one task get every chunk; counts deliveries
  open-streams  so many streams open at the same time, until each gets its end
  list-running  one page of 50 tasks, 20 of which have many chunks and still work (dialects 1.0 and rest)
  stalled       a task that streams to one reader, beside so many readers that never read; counts events
  http2         so many streams open on one HTTP/2 connection, and cancels over it, which are timed

URL is where the card lies: /.well-known/agent-card.json is asked for below it. Any A2A server will do. One
whose agent echoes `echo: TEXT`, as the demo agent does, has its texts checked too. All workloads but send, get,
list and list-newest need such a server, since they use the words `stream N MS` and `slow S` of the demo agent. For others a
notice says what was not checked. The tasks stay on the server: use one for trials.

On a terminal it prints a table, in a pipe one JSON object. The exit code is 0 only if every reply was right.")]
    Bench(BenchOptions),
}

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

fn since(text: &str) -> Result<Since, String> {
    if text == "all" {
        return Ok(Since::Begin);
    }
    let time = Timestamp::parse(text).map(Since::Time);
    let since = time.or_else(|| parse_duration(text).map(Since::Ago));
    since.ok_or_else(|| "expected a duration such as 1h or 7d, a time such as 2026-05-01T12:00:00Z, or all".to_owned())
}

/// Which server is asked.
#[derive(Debug, Clone, Args)]
pub struct RunningServer {
    /// The server, such as http://127.0.0.1:41242
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,

    /// The bearer token to show, if the server asks for credentials. Rather in the environment: others see command lines
    #[arg(long, value_name = "TOKEN", env = "SABIR_TOKEN", hide_env_values = true)]
    pub token: Option<String>,

    /// Without --url: the configuration that names its address, instead of ./sabir.toml
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// It becomes a part of a path.
fn delivery_id(text: &str) -> Result<String, String> {
    let number = text.strip_prefix(['p', 'g']).unwrap_or_default();
    match !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) {
        true => Ok(text.to_owned()),
        false => Err("ids are such as p12 (pending) and g7 (given up)".to_owned()),
    }
}

/// The flags of `card`.
#[derive(Debug, Clone, Args)]
pub struct CardOptions {
    /// The server, such as https://agents.example.com, or its card
    pub url: String,

    /// Verify the signatures of the card
    #[arg(long)]
    pub verify: bool,

    /// The key set (JWKS) that you trust: a URL or a file
    #[arg(long, value_name = "URL|FILE", requires = "verify")]
    pub jwks: Option<String>,

    /// Print JSON on a terminal too
    #[arg(long)]
    pub json: bool,
}

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

/// The flags of `config`.
#[derive(Debug, Clone, Args)]
pub struct ConfigOptions {
    #[command(flatten)]
    pub options: CliOptions,

    /// Print the JSON Schema of the configuration file, for editors
    #[arg(long)]
    pub schema: bool,
}

/// The flags of `agents`.
#[derive(Debug, Clone, Args)]
pub struct AgentsOptions {
    #[command(flatten)]
    pub options: CliOptions,

    /// Start each configured program, or the one of this agent, and ask it for a word
    #[arg(long, value_name = "ID", num_args = 0..=1)]
    pub check: Option<Option<String>>,
}

/// The flags of `bench`.
#[derive(Debug, Clone, Args)]
pub struct BenchOptions {
    /// The server, such as http://127.0.0.1:41242
    pub url: String,

    /// What to do, over and over
    #[arg(long, value_name = "NAME", default_value = "send",
          value_parser = PossibleValuesParser::new(Workload::ALL.map(Workload::name)))]
    pub workload: String,

    /// How many connections do it at the same time; for open-streams and http2 how many streams
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub connections: u32,

    /// How long to measure, after a short warm-up
    #[arg(long, value_name = "S", default_value_t = 5.0, value_parser = positive)]
    pub seconds: f64,

    /// End after so many requests or streams instead, without a warm-up
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,

    /// The protocol version; rest is 1.0 as HTTP+JSON, gateway the plain REST below /v1/a2a/agents
    #[arg(long, value_name = "NAME", default_value = "1.0",
          value_parser = PossibleValuesParser::new(Dialect::ALL.map(Dialect::name)))]
    pub dialect: String,

    /// How many chunks an answer of stream (default 100), fanout (1000), list-running or stalled (20000) has
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub chunks: Option<u64>,

    /// How many read the task of fanout, or do not read that of stalled
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub readers: u32,

    /// The server's process on this machine, to report its processor time and memory (Linux)
    #[arg(long, value_name = "PID")]
    pub pid: Option<u32>,

    /// Print JSON on a terminal too
    #[arg(long)]
    pub json: bool,
}

fn positive(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if seconds > 0.0 && seconds <= 86_400.0 { Ok(seconds) } else { Err("not between 0 and 86400".to_owned()) }
}

/// The flags of `serve`, `config` and `agents`.
#[derive(Debug, Clone, Default, Args)]
pub struct CliOptions {
    /// Read this file instead of ./sabir.toml
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Serve on this address, such as 127.0.0.1:41242 or [::1]:41242; may be repeated. A port alone
    /// (7870 or :7870) means loopback
    #[arg(long, value_name = "ADDR", value_delimiter = ',')]
    pub listen: Vec<String>,

    /// Serve on this port of 127.0.0.1
    #[arg(long, value_name = "N")]
    pub port: Option<u16>,

    /// Keep tasks here: sqlite:PATH, or memory: for trials (not durable)
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,

    /// Run one agent of this kind instead of those in the file: demo, conformance, or a program (claude-code, codex,
    /// gemini, opencode, goose, copilot, qwen, vibe, cursor), which works in the current folder
    #[arg(long, value_name = "KIND")]
    pub agent: Option<String>,

    /// Serve on addresses that other machines can reach although callers need no credentials
    #[arg(long)]
    pub allow_open: bool,

    /// The address under which clients reach this server, for its card
    #[arg(long, value_name = "URL")]
    pub public_url: Option<String>,

    /// Serve HTTPS with a certificate for this machine that sabir makes, for trials
    #[arg(long)]
    pub dev_tls: bool,

    /// How log lines look: text or json
    #[arg(long, value_name = "FORMAT")]
    pub log_format: Option<String>,

    /// What is logged: off, error, warn, info, debug or trace, also per module: info,sabir=debug
    #[arg(long, value_name = "LEVEL")]
    pub log_level: Option<String>,
}

//! The configuration as the rest of the program sees it: parsed, checked, every default filled in.
//!
//! One struct per section of `sabir.toml`, one field per key. The defaults are in the tables of settings and only there:
//! the `Default` of these types is blank, and `load` reads the tables.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use sabir_agents::program::settings::{Isolation, Kind, Mode, PromptBy, SharedWorkspace};
use sabir_agents::prompt::Approve;
use sabir_agents::routing::Profile;
use sabir_engine::{AuditKeep, DelegationLimits, RetentionPolicy};
use sabir_model::{Extension, Skill};
use sabir_outbound::credentials::ApiKeyPlace;
use sabir_outbound::{Binding, Ports, ProtocolVersion};
use sabir_server::jwt::JwtSettings;
use sabir_server::{AddressRange, ClientAuth, Credential, Digest, Grant};
use sabir_store::Durability;
use sabir_wire::Compat;

use super::postgres_url::PostgresUrl;

/// Everything `serve` needs to know.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Config {
    pub server: ServerSection,
    pub auth: AuthSection,
    pub store: StoreSection,
    pub cluster: ClusterSection,
    pub agents: Vec<AgentConfig>,
    /// Agents that only `routing` reaches: they have neither address nor card.
    pub routed_agents: Vec<AgentConfig>,
    pub routing: Routing,
    pub card: CardSection,
    pub compat: Compat,
    pub limits: LimitsSection,
    pub send: SendSection,
    pub push: PushSection,
    pub recovery: RecoverySection,
    pub retention: RetentionPolicy,
    pub audit: AuditSection,
    pub console: ConsoleSection,
    pub mcp: McpSection,
    pub openai: OpenAiSection,
    pub delegation: DelegationLimits,
    pub metrics: MetricsSection,
    pub log: LogSection,
}

impl Config {
    /// Whether an audit log is kept.
    pub fn keeps_audit(&self) -> bool {
        self.audit.enabled.unwrap_or_else(|| self.asks_for_credentials())
    }

    /// Those that have an address, then those that only `routing` reaches.
    pub fn all_agents(&self) -> impl Iterator<Item = &AgentConfig> {
        self.agents.iter().chain(&self.routed_agents)
    }

    /// Whether callers are asked for a credential.
    pub fn asks_for_credentials(&self) -> bool {
        self.auth.has_headers() || self.server.tls_client_ca.is_some()
    }

    /// How many programs can run at the same time, including those that wait for an answer.
    pub fn program_runs(&self) -> usize {
        self.all_agents().fold(0, |runs: usize, agent| {
            let tools = agent.openai.mcp_servers.iter().filter(|server| !server.command.is_empty()).count();
            let programs = usize::from(agent.is_program()) + tools;
            runs.saturating_add(programs.saturating_mul(agent.max_concurrent + agent.max_parked))
        })
    }
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct ServerSection {
    pub listen: Vec<SocketAddr>,
    /// Absolute, without a slash at the end.
    pub public_url: Option<String>,
    /// `host:port`.
    pub public_grpc: Option<String>,
    pub body_limit: usize,
    pub memory: usize,
    /// `*` or `scheme://host[:port]`; empty means that no browser page of another origin may call.
    pub cors_origins: Vec<String>,
    /// `*` or host names, beside those that are always answered to.
    pub allowed_hosts: Vec<String>,
    pub allow_open: bool,
    pub grace: Duration,
    pub drain: Duration,
    pub keep_alive: Duration,
    /// PEM files; both or neither, which `check_tls` checks.
    pub tls_cert: Option<PathBuf>,
    pub tls_key: Option<PathBuf>,
    pub tls_client_ca: Option<PathBuf>,
    pub tls_client_auth: ClientAuth,
    pub dev_tls: bool,
    /// Whose forwarding headers say who asks.
    pub trusted_proxies: Vec<AddressRange>,
}

impl ServerSection {
    /// What the addresses of this server begin with.
    pub fn scheme(&self) -> &'static str {
        if self.dev_tls || self.tls_cert.is_some() { "https" } else { "http" }
    }
}

/// What callers must show. With none of these, nobody is asked.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AuthSection {
    /// Refuses to start without any credential.
    pub required: bool,
    /// Those that are given as they are, mostly in the environment.
    pub tokens: Vec<Credential>,
    pub token: Vec<CredentialConfig>,
    pub api_key: Vec<CredentialConfig>,
    pub issuers: Vec<JwtSettings>,
    /// Of callers with a client certificate, where `server.tls_client_ca` names authorities.
    pub certificate_scopes: Vec<String>,
}

impl AuthSection {
    /// Whether there is a credential that callers show in a header.
    pub fn has_headers(&self) -> bool {
        !(self.tokens.is_empty() && self.token.is_empty() && self.api_key.is_empty() && self.issuers.is_empty())
    }
}

/// One `[[auth.token]]` or `[[auth.api_key]]`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CredentialConfig {
    pub subject: String,
    pub tenant: Option<String>,
    /// There in every configuration that was accepted.
    pub digest: Option<Digest>,
    pub scopes: Vec<String>,
    /// In lower case; of keys only.
    pub header: String,
}

impl CredentialConfig {
    pub fn credential(&self) -> Option<Credential> {
        let grant = Grant {
            subject: self.subject.clone(),
            tenant: self.tenant.clone().unwrap_or_default(),
            scopes: self.scopes.clone(),
        };
        self.digest.map(|digest| Credential { digest, grant })
    }
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct StoreSection {
    pub url: StoreUrl,
    /// For the files of a server whose database is not on its own machine. There in every configuration with Postgres.
    pub folder: Option<PathBuf>,
    pub durability: Durability,
    /// Encrypts the secrets of webhooks.
    pub key: Option<Secret>,
}

impl StoreSection {
    /// The file that the other files of this server are named after and lie beside: address file, worktrees, certificates. That
    /// is the database itself, and with Postgres a file in the folder of this node. `None`: tasks are in memory.
    pub fn local_file(&self) -> Option<PathBuf> {
        match (&self.url, &self.folder) {
            (StoreUrl::Sqlite(path), _) => Some(path.clone()),
            (StoreUrl::Postgres(_), folder) => Some(folder.clone().unwrap_or_default().join(NODE_FILE)),
            (StoreUrl::Memory, _) => None,
        }
    }
}

/// In the folder of a node. A server holds a lock on it, so that no two servers are the same node.
const NODE_FILE: &str = "node";

#[derive(Debug, Clone, PartialEq, Default)]
pub enum StoreUrl {
    /// A database file. Whoever opens it makes the directory.
    Sqlite(PathBuf),
    /// A database that several servers share.
    Postgres(PostgresUrl),
    /// For trials: everything is gone when the server stops.
    #[default]
    Memory,
}

/// What this server is among those that share its store.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ClusterSection {
    /// `None`: the name of the machine.
    pub node_name: Option<String>,
    pub beat: Duration,
    pub grace: Duration,
    pub home_timeout: Duration,
    pub writers: usize,
}

impl ClusterSection {
    /// The name of this node.
    pub fn node(&self) -> String {
        self.node_name.clone().unwrap_or_else(super::node_folder::machine_node_name)
    }
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct AgentConfig {
    pub id: String,
    pub kind: AgentKind,
    pub name: Option<String>,
    pub description: Option<String>,
    /// Empty: nothing is said, so the kind's own hold. The same for the modes.
    pub skills: Vec<Skill>,
    pub input_modes: Vec<String>,
    pub output_modes: Vec<String>,
    /// Beside the kind's own.
    pub extensions: Vec<Extension>,
    pub streaming: bool,
    pub default: bool,
    pub listed: bool,
    /// The scope of those who answer its questions for permission.
    pub approver: Option<String>,
    pub max_concurrent: usize,
    /// On all servers that share the store.
    pub max_concurrent_total: Option<u32>,
    pub queue: usize,
    pub max_parked: usize,
    pub timeout: Option<Duration>,
    pub idle_timeout: Option<Duration>,
    /// The outer `None`: what `[limits]` says; the inner one: no limit. The same for the next two.
    pub tasks_per_caller: Option<Option<usize>>,
    pub message_bytes: Option<Option<usize>>,
    pub message_parts: Option<Option<usize>>,
    /// For the demo agent; all others start so anyway.
    pub stored_first: bool,
    pub card: AgentCard,
    /// For programs; other kinds have no use for it.
    pub program: ProgramConfig,
    /// For remote agents. Models behind a server have their address and their credential here, too.
    pub remote: RemoteConfig,
    /// For models behind a server.
    pub openai: OpenAiConfig,
}

impl AgentConfig {
    /// An agent of this kind with the defaults of the table.
    #[cfg(test)]
    pub fn new(id: &str, kind: AgentKind) -> Self {
        let agent =
            super::origin::Configured::new(AgentConfig::default(), &super::agent_settings::AGENT_SETTINGS).subject;
        AgentConfig { id: id.to_owned(), kind, ..agent }
    }

    pub fn is_program(&self) -> bool {
        matches!(self.kind, AgentKind::Program(_))
    }

    /// Whether another model than its own can be chosen for a task.
    pub fn has_models(&self) -> bool {
        matches!(self.kind, AgentKind::Program(_) | AgentKind::OpenAi)
    }
}

/// What the card of a program says where the file says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum AgentCard {
    /// What is known of the program.
    #[default]
    OfProgram,
    /// That it does coding tasks, whatever it is: clients of the server whose names describe it expect that.
    OfCodingProgram,
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum AgentKind {
    #[default]
    Demo,
    Conformance,
    /// A remote agent.
    A2a,
    /// A model behind a server.
    OpenAi,
    Program(Kind),
}

impl AgentKind {
    /// Its name in the file.
    pub fn name(self) -> &'static str {
        match self {
            AgentKind::Demo => "demo",
            AgentKind::Conformance => "conformance",
            AgentKind::A2a => "a2a",
            AgentKind::OpenAi => "openai",
            AgentKind::Program(kind) => kind.info().name,
        }
    }
}

/// Where a remote agent is, and how it is spoken to.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RemoteConfig {
    pub url: Option<String>,
    pub card_url: Option<String>,
    pub endpoint: Option<String>,
    pub version: Option<ProtocolVersion>,
    pub transports: Vec<Binding>,
    pub tenant: Option<String>,
    pub card_refresh: Duration,
    pub unreachable_timeout: Duration,
    pub upstream: UpstreamConfig,
}

/// How a model is asked, and what tools it has.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OpenAiConfig {
    pub system_prompt: Option<String>,
    pub system_prompt_file: Option<PathBuf>,
    pub temperature: Option<f64>,
    pub max_tokens: Option<u32>,
    pub history_messages: usize,
    pub history_size: usize,
    pub answer_timeout: Duration,
    pub silence_timeout: Duration,
    pub mcp_servers: Vec<McpServerConfig>,
    pub tool_timeout: Duration,
    pub max_tool_rounds: usize,
    pub approve_tools: bool,
}

/// A server of tools: a program, or an address.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct McpServerConfig {
    pub name: String,
    /// The program and its arguments. Empty: it has an address.
    pub command: Vec<String>,
    pub environment: Vec<(String, String)>,
    pub pass_environment: Vec<String>,
    pub url: Option<String>,
    pub headers: Vec<(String, Secret)>,
    /// The bearer token, from a variable.
    pub token: SecretInput,
}

impl McpServerConfig {
    pub fn shows_secret(&self) -> bool {
        self.token.variable.is_some() || !self.headers.is_empty()
    }
}

/// What a remote agent is shown of this server: one credential at most, fixed headers, a certificate.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct UpstreamConfig {
    pub token: SecretInput,
    pub token_file: Option<PathBuf>,
    pub api_key: SecretInput,
    pub api_key_name: String,
    pub api_key_in: ApiKeyPlace,
    pub user: Option<String>,
    pub password: SecretInput,
    pub oauth: UpstreamOauth,
    pub headers: Vec<(String, Secret)>,
    /// PEM files; both of the first two or neither.
    pub client_certificate: Option<PathBuf>,
    pub client_key: Option<PathBuf>,
    pub ca: Option<PathBuf>,
}

/// How tokens for a remote agent are fetched.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct UpstreamOauth {
    pub token_url: Option<String>,
    pub client_id: Option<String>,
    pub client_secret: SecretInput,
    pub client_auth: OauthClientAuth,
    pub scopes: Vec<String>,
    pub audience: Vec<String>,
    pub resource: Vec<String>,
    /// With it a token is exchanged for another one (RFC 8693).
    pub subject_token_file: Option<PathBuf>,
    pub subject_token_type: Option<String>,
}

/// Where the secret of a client stands in the request for a token.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum OauthClientAuth {
    #[default]
    Basic,
    Post,
}

/// A secret that is written down, or the variable that has it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SecretInput {
    /// Also that of the variable, if it is set.
    pub value: Option<Secret>,
    pub variable: Option<String>,
}

/// How an agent runs its program.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ProgramConfig {
    pub mode: Mode,
    /// The program and its first arguments. Empty: the program of the kind.
    pub command: Vec<String>,
    pub arguments: Vec<String>,
    pub model: Option<String>,
    pub instructions: Option<String>,
    pub workspace: PathBuf,
    pub workspace_roots: Vec<PathBuf>,
    pub isolation: Isolation,
    pub shared_workspace: SharedWorkspace,
    pub approve: Approve,
    pub approval_timeout: Option<Duration>,
    pub prompt_by: PromptBy,
    pub hibernate_after: Option<Duration>,
    pub keep_warm: Duration,
    pub approval_pattern: Option<String>,
    pub approval_response: String,
    pub trust_prompts: bool,
    pub trust_workspace: bool,
    pub environment: Vec<(String, String)>,
    pub pass_environment: Vec<String>,
    /// Whether callers are told the end of a failed program's standard error. `None` only until all layers are read.
    pub tell_stderr: Option<bool>,
    pub keep_files: bool,
    /// Its sessions can be resumed on another node.
    pub portable: bool,
    pub max_output: usize,
    /// Which other agents it may ask in the name of its task.
    pub delegate: DelegateTo,
}

/// The agents that a program may ask.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum DelegateTo {
    #[default]
    Nobody,
    /// All that its caller may run.
    All,
    Agents(Vec<String>),
}

/// Where messages to the default agent go.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Routing {
    pub complex: Option<RouteConfig>,
    pub mid: Option<RouteConfig>,
    pub routine: Option<RouteConfig>,
}

impl Routing {
    pub fn of(&self, profile: Profile) -> Option<&RouteConfig> {
        match profile {
            Profile::Complex => self.complex.as_ref(),
            Profile::Mid => self.mid.as_ref(),
            Profile::Routine => self.routine.as_ref(),
        }
    }

    pub fn of_mut(&mut self, profile: Profile) -> &mut Option<RouteConfig> {
        match profile {
            Profile::Complex => &mut self.complex,
            Profile::Mid => &mut self.mid,
            Profile::Routine => &mut self.routine,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct RouteConfig {
    /// The id of an agent.
    pub agent: String,
    /// Instead of the agent's own.
    pub model: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct CardSection {
    pub name: Option<String>,
    pub description: Option<String>,
    pub organization: Option<String>,
    pub organization_url: Option<String>,
    pub version: Option<String>,
    pub documentation_url: Option<String>,
    pub icon_url: Option<String>,
    pub profile: CardProfile,
    /// One protocol version's keys only, not those of all.
    pub pure: bool,
    pub max_age: Duration,
    pub signing_key: Option<Secret>,
}

/// Whose clients find their way by the card's `url`.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum CardProfile {
    #[default]
    A2a,
    Gateway,
}

/// What one caller may have and do. `None`: no limit.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LimitsSection {
    pub requests_per_second: Option<u32>,
    /// `None`: as many as in a second.
    pub burst: Option<u32>,
    pub tasks_per_caller: Option<usize>,
    pub open_streams: Option<usize>,
    pub stored_bytes: Option<usize>,
    pub message_bytes: Option<usize>,
    pub message_parts: Option<usize>,
    /// `None`: a part of all connections.
    pub connections_per_peer: Option<usize>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct SendSection {
    pub max_wait: Option<Duration>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct PushSection {
    pub enabled: bool,
    /// Host names and addresses, without scheme and port.
    pub allow_hosts: Vec<String>,
    /// `10.0.0.0/8`, `fd00::/8`, or one address.
    pub allow_cidrs: Vec<String>,
    pub ports: Ports,
    pub timeout: Duration,
    pub give_up_after: Duration,
    pub per_receiver: usize,
    pub hmac_secret: Option<Secret>,
    pub signing_key: Option<Secret>,
}

/// A text that nobody is shown.
#[derive(Clone, PartialEq)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: &str) -> Self {
        Secret(text.to_owned())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("(not shown)")
    }
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct RecoverySection {
    pub running: sabir_engine::Recovery,
}

/// The audit log.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AuditSection {
    /// `None`: if callers have credentials.
    pub enabled: Option<bool>,
    pub keep: AuditKeep,
}

/// The pages for people.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ConsoleSection {
    pub enabled: bool,
}

/// The agents as tools for programs that speak MCP.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct McpSection {
    pub enabled: bool,
    /// The longest wait of a call.
    pub wait: Duration,
}

/// The agents as models for programs that speak OpenAI's chat completions.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OpenAiSection {
    pub enabled: bool,
}

/// Figures for Prometheus.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MetricsSection {
    pub enabled: bool,
    /// Addresses that serve them to everybody, beside `/metrics` of the server itself.
    pub listen: Vec<SocketAddr>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct LogSection {
    /// `info`, or directives such as `info,sabir=debug`.
    pub level: String,
    pub format: LogFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum LogFormat {
    #[default]
    Text,
    Json,
}

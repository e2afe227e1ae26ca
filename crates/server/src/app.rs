//! What the server knows, shared by all its connections.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use sabir_doors::mcp::{McpDoor, McpSettings};
use sabir_doors::openai::OpenAiDoor;
use sabir_engine::Engine;
use sabir_model::{Caller, Timestamp};
use sabir_wire::{CardFormat, Compat, Dialect, V1};
use tokio::sync::Semaphore;

use crate::admin::{AdminAccess, ServerFacts};
use crate::auth::{ApiKey, Auth, AuthSettings, Credential, RefusalLog};
use crate::budget::Budget;
use crate::call_observer::CallObserver;
use crate::cards::{Cards, CatalogueAccess};
use crate::connections::{OpenConnections, Timeouts};
use crate::console::Console;
use crate::encoded_tasks::EncodedTasks;
use crate::host::HostCheck;
use crate::limits::{Limits, RequestLimits};
use crate::metrics::{Metrics, Serves};
use crate::open_streams::OpenStreams;
use crate::openai::OpenAi;
use crate::peer::{PeerLimit, TrustedProxies};
use crate::request_id::RequestIds;
use crate::signed_cards::CardSigner;
use crate::visible_agents::VisibleAgents;

/// So many may watch the health service at the same time. They need no credential.
const HEALTH_WATCHERS: usize = 64;

/// Cheap to clone; all clones are the same server.
#[derive(Clone)]
pub struct App {
    pub(crate) inner: Arc<AppState>,
    /// Which names requests may come to, on this listener.
    pub(crate) hosts: Arc<HostCheck>,
    /// What there is on this listener.
    pub(crate) serves: Serves,
}

pub(crate) struct AppState {
    pub(crate) engine: Engine,
    /// Some agents are not listed, so what is at a path depends on who asks.
    pub(crate) hides_agents: bool,
    pub(crate) auth: Arc<Auth>,
    pub(crate) cards: Cards,
    /// `None`: there is no MCP.
    pub(crate) mcp: Option<McpDoor>,
    /// `None`: there are no chat completions.
    pub(crate) openai: Option<OpenAiDoor>,
    pub(crate) settings: ServerSettings,
    pub(crate) budget: Arc<Budget>,
    pub(crate) encoded_tasks: Arc<EncodedTasks>,
    pub(crate) request_ids: RequestIds,
    pub(crate) limits: Limits,
    pub(crate) refusal_log: RefusalLog,
    /// Who may watch the health of the server now.
    pub(crate) health_watchers: Arc<Semaphore>,
    pub(crate) open_streams: OpenStreams,
    /// Those of all listeners but the one for figures.
    pub(crate) connections: OpenConnections,
    pub(crate) started: Started,
    /// Whoever makes a backup of the store holds it.
    pub(crate) backup_place: Arc<Semaphore>,
}

/// When the server was put together.
pub(crate) struct Started {
    pub(crate) time: Timestamp,
    pub(crate) at: Instant,
}

impl Started {
    fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let time = Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX));
        Self { time, at: Instant::now() }
    }
}

#[derive(Debug, Clone)]
pub struct ServerSettings {
    /// A larger body is refused.
    pub body_limit: usize,
    /// What large requests and replies may take together, in bytes; beyond it callers are told to try again later.
    pub memory: usize,
    /// Beyond this number, connections that do nothing give way to new ones.
    pub max_connections: usize,
    pub per_peer: PeerLimit,
    pub timeouts: Timeouts,
    /// A stream that says nothing for so long gets a comment.
    pub keep_alive: Duration,
    pub compat: Compat,
    pub hosts: HostCheck,
    /// The same for listeners that other machines can reach.
    pub hosts_beyond_loopback: HostCheck,
    /// Whose forwarding headers say who asks.
    pub trusted_proxies: TrustedProxies,
    pub cors: CorsSettings,
    /// What callers must show.
    pub auth: AuthSettings,
    /// How many requests one caller may make.
    pub limits: RequestLimits,
    /// Whether admin calls are taken where nobody is asked for a credential.
    pub admin: AdminAccess,
    /// The keys by which receivers verify webhooks and clients verify cards, a JWKS document; `None`: there are none.
    pub jwks: Option<String>,
    /// Whether there are pages for people.
    pub console: Console,
    /// The longest wait of an MCP call; `None`: there is no MCP.
    pub mcp: Option<Duration>,
    /// Whether programs that speak OpenAI's chat completions reach the agents.
    pub openai: OpenAi,
    pub card: CardSettings,
    /// `None`: cards are not signed. They are not either where `card.base` is not known.
    pub card_signer: Option<Arc<dyn CardSigner>>,
    /// What operators are told of the server.
    pub facts: ServerFacts,
    /// `None`: no figures are kept, and there is no `/metrics`.
    pub metrics: Option<Arc<Metrics>>,
    /// `None`: nobody watches calls.
    pub call_observer: Option<Arc<dyn CallObserver>>,
}

/// Which pages of other origins may call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CorsSettings {
    /// `*` or `scheme://host[:port]`; empty: none.
    pub origins: Vec<String>,
}

/// What the cards say of gRPC, whose addresses have no path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GrpcAddress {
    /// The host and port where clients reach this server by HTTP, since that is this server itself.
    OfBase,
    /// `host:port`.
    At(String),
    /// Something stands in front that may or may not pass gRPC on, so the cards do not promise it.
    Unknown,
}

impl GrpcAddress {
    /// `host:port`, if it is known.
    pub(crate) fn authority(&self, base: &str) -> Option<String> {
        match self {
            GrpcAddress::At(address) => Some(address.clone()),
            GrpcAddress::Unknown => None,
            GrpcAddress::OfBase => {
                let (scheme, authority) = base.split_once("://")?;
                let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'));
                let port = if scheme == "https" { 443 } else { 80 };
                let is_plain = !authority.contains('/');
                is_plain.then(|| if has_port { authority.to_owned() } else { format!("{authority}:{port}") })
            }
        }
    }
}

/// What the card of the server says beside what its agents say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CardSettings {
    pub name: Option<String>,
    pub description: Option<String>,
    pub organization: Option<String>,
    pub organization_url: Option<String>,
    pub version: String,
    pub documentation_url: Option<String>,
    pub icon_url: Option<String>,
    /// Where clients reach this server; `None`: where the request says that it came to.
    pub base: Option<String>,
    /// Where clients reach it over gRPC.
    pub grpc: GrpcAddress,
    /// For clients that name no version.
    pub default_format: CardFormat,
    pub max_age: Duration,
    /// Who may read the list of the agents.
    pub catalogue: CatalogueAccess,
}

impl App {
    pub fn new(engine: Engine, settings: ServerSettings) -> Self {
        let hides_agents = engine.agents().any(|agent| !agent.is_listed);
        let auth = Arc::new(Auth::new(&settings.auth));
        let cards = Cards::new(&engine, settings.card.clone(), settings.card_signer.clone(), auth.clone());
        let budget = Budget::new(settings.memory);
        let encoded_tasks = EncodedTasks::new(budget.clone());
        let request_ids = RequestIds::new();
        let limits = Limits::new(settings.limits);
        let hosts = Arc::new(settings.hosts.clone());
        let refusal_log = RefusalLog::default();
        let health_watchers = Arc::new(Semaphore::new(HEALTH_WATCHERS));
        let mcp = settings.mcp.map(|longest_wait| {
            let version = settings.facts.version.clone();
            McpDoor::new(engine.clone(), McpSettings { longest_wait, version, born: V1.birth() })
        });
        let openai = (settings.openai == OpenAi::Served).then(|| OpenAiDoor::new(engine.clone(), V1.birth()));
        let inner = AppState {
            engine,
            hides_agents,
            auth,
            cards,
            mcp,
            openai,
            settings,
            budget,
            encoded_tasks,
            request_ids,
            limits,
            refusal_log,
            health_watchers,
            open_streams: OpenStreams::default(),
            connections: OpenConnections::default(),
            started: Started::now(),
            backup_place: Arc::new(Semaphore::new(1)),
        };
        Self { inner: Arc::new(inner), hosts, serves: Serves::Everything }
    }

    /// The same server as a listener on this address sees it.
    pub(crate) fn on_listener(&self, address: Option<SocketAddr>) -> Self {
        let settings = &self.inner.settings;
        match address {
            Some(address) if !address.ip().to_canonical().is_loopback() => {
                Self { hosts: Arc::new(settings.hosts_beyond_loopback.clone()), ..self.clone() }
            }
            _ => self.clone(),
        }
    }

    /// The agents as this caller sees them; `None`: it is not known who calls.
    pub(crate) fn visible_agents<'a>(&'a self, caller: Option<&'a Caller>) -> VisibleAgents<'a> {
        VisibleAgents { engine: &self.inner.engine, caller }
    }

    /// Takes these tokens and keys from now on, and no others; calls that are under way go on.
    ///
    /// # Errors
    /// One is of a kind that this server has not taken so far.
    pub fn reload_credentials(&self, tokens: &[Credential], api_keys: &[ApiKey]) -> Result<(), String> {
        self.inner.auth.reload(tokens, api_keys)
    }

    /// What large requests and replies take now, in bytes.
    pub fn reserved_memory(&self) -> usize {
        self.inner.budget.reserved()
    }

    /// Streams that count against the limit of their callers now.
    pub fn open_streams(&self) -> usize {
        self.inner.engine.counted_against_limits().1
    }

    /// How often something large was encoded; those who read the same task at the same time share one encoding.
    pub fn large_encodings(&self) -> usize {
        self.inner.encoded_tasks.count()
    }
}

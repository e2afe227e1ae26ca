//! The server as a value: agents, a store, and where to listen.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sabir_engine::{Agent, Builder, Engine, Hosted, Limits, Settings};
use sabir_model::AgentId;
use sabir_server::{
    App, CardSettings, CorsSettings, HostCheck, HostName, Listeners, ServerSettings, Service, Timeouts,
};
use sabir_store::{Durability, MemoryStore, SqliteStore, Store};
use tokio::sync::watch;

/// How long running turns have to end when the server stops.
const GRACE: Duration = Duration::from_secs(10);
/// What the answers of settled turns may take on their way out.
const LINGER: Duration = Duration::from_millis(500);
/// The largest body, and what large requests and replies may take together; the program has the same by default.
const BODY_LIMIT: usize = 16 << 20;
const MEMORY: usize = 256 << 20;
const MAX_CONNECTIONS: usize = 10_000;
/// A stream that says nothing for so long gets a comment, so that proxies leave it open.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
const CARD_MAX_AGE: Duration = Duration::from_secs(3600);

/// An A2A server that is being put together.
///
/// The first agent is the one that messages go to which name no agent. Without [`Server::store`] tasks are kept in memory
/// and are gone when the server stops.
pub struct Server {
    agents: Vec<(String, Arc<dyn Agent>, Limits)>,
    store: String,
    public_url: Option<String>,
    hosts: Option<Vec<String>>,
    cors_origins: Vec<String>,
}

/// Why a server cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// There is no agent.
    #[error("a server needs an agent: call `Server::agent` first")]
    NoAgent,
    /// The id of an agent is no id.
    #[error("the agent id {id:?} {reason}")]
    AgentId {
        /// What was given.
        id: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Two agents have one id.
    #[error("there are two agents with the id {0:?}")]
    SameAgent(String),
    /// The store is neither `memory:` nor `sqlite:PATH`, or it cannot be opened.
    #[error("the store {url:?} cannot be used: {reason}")]
    Store {
        /// What was given.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// It is no address, or the system does not let us listen there.
    #[error("cannot listen on {address}: {reason}")]
    Listen {
        /// What was given.
        address: String,
        /// What is wrong with it.
        reason: String,
    },
    /// What an earlier process left in the store cannot be taken up.
    #[error("cannot take up the tasks of the store: {0}")]
    Recovery(String),
}

impl Default for Server {
    fn default() -> Self {
        Self::new()
    }
}

impl Server {
    /// A server without agents, which keeps its tasks in memory.
    pub fn new() -> Self {
        Self { agents: Vec::new(), store: "memory:".into(), public_url: None, hosts: None, cors_origins: Vec::new() }
    }

    /// Hosts an agent under this id: letters, digits, `.`, `_` and `-`.
    pub fn agent(self, id: impl Into<String>, agent: impl Agent) -> Self {
        self.agent_within(id, agent, Limits::default())
    }

    /// The same with limits of its own: turns at once, length of the queue, time of a turn.
    pub fn agent_within(mut self, id: impl Into<String>, agent: impl Agent, limits: Limits) -> Self {
        self.agents.push((id.into(), Arc::new(agent), limits));
        self
    }

    /// Where tasks are kept: `sqlite:PATH`, or `memory:`. One server at a time can have a file.
    pub fn store(mut self, url: impl Into<String>) -> Self {
        self.store = url.into();
        self
    }

    /// Where clients reach the server, if that is not the address that it listens on. Cards say it.
    pub fn public_url(mut self, url: impl Into<String>) -> Self {
        self.public_url = Some(url.into());
        self
    }

    /// Names that requests may come to, beside IP addresses and `localhost`. [`Server::serve`] refuses others, so that a
    /// web page cannot reach a server on this machine by a name of its own. [`Server::service`] checks only if this is set.
    pub fn allowed_hosts<H: Into<String>>(mut self, hosts: impl IntoIterator<Item = H>) -> Self {
        self.hosts.get_or_insert_default().extend(hosts.into_iter().map(Into::into));
        self
    }

    /// Origins of web pages that may call this server, such as `https://console.example`.
    pub fn cors_origins<O: Into<String>>(mut self, origins: impl IntoIterator<Item = O>) -> Self {
        self.cors_origins.extend(origins.into_iter().map(Into::into));
        self
    }

    /// Listens on the address and serves until Ctrl-C or SIGTERM; then running turns have ten seconds to end.
    ///
    /// # Errors
    /// Something that was given cannot be used; see [`ServerError`].
    pub async fn serve(self, address: impl ToSocketAddrs + std::fmt::Debug) -> Result<(), ServerError> {
        let listeners = bind(&address).await?;
        let (app, engine) = self.start_app(Some(listeners.addresses())).await?;
        listen(listeners, app, engine, interrupted()).await;
        Ok(())
    }

    /// Starts the agents without listening anywhere: tasks that an earlier process left behind are settled or resumed,
    /// and calls can be made by [`StartedServer::engine`] and [`StartedServer::service`].
    ///
    /// # Errors
    /// Something that was given cannot be used; see [`ServerError`].
    pub async fn start(self) -> Result<StartedServer, ServerError> {
        let (app, engine) = self.start_app(None).await?;
        Ok(StartedServer { app, engine })
    }

    /// The server as a `tower` service, for axum or any other stack. Where it is mounted below a path, say so by
    /// [`Server::public_url`], so that cards lead there.
    ///
    /// # Errors
    /// Something that was given cannot be used; see [`ServerError`].
    pub async fn service(self) -> Result<Service, ServerError> {
        Ok(self.start().await?.service())
    }

    /// The agents alone, for calls without HTTP.
    ///
    /// # Errors
    /// Something that was given cannot be used; see [`ServerError`].
    pub async fn engine(self) -> Result<Engine, ServerError> {
        Ok(self.start().await?.engine().clone())
    }

    /// `addresses` are those that it will listen on; `None`: somebody else listens.
    async fn start_app(self, addresses: Option<Vec<SocketAddr>>) -> Result<(App, Engine), ServerError> {
        let hosted = hosted(self.agents)?;
        let mut builder = Builder::new(open_store(&self.store)?).settings(Settings::default());
        for agent in hosted {
            builder = builder.agent(agent);
        }
        let engine = builder.start().await.map_err(|error| ServerError::Recovery(error.to_string()))?;
        let first =
            addresses.as_deref().and_then(<[SocketAddr]>::first).filter(|address| !address.ip().is_unspecified());
        let names = match (self.hosts, &addresses) {
            (None, None) => None,
            (names, _) => Some(names.unwrap_or_default()),
        };
        let public = self.public_url.as_deref().and_then(host_of).map(str::to_owned);
        let hosts = names.map_or(HostCheck::Off, |names| {
            HostCheck::Names(names.into_iter().chain(public).filter_map(|name| HostName::parse(&name)).collect())
        });
        let settings = ServerSettings {
            body_limit: BODY_LIMIT,
            memory: MEMORY,
            max_connections: MAX_CONNECTIONS,
            timeouts: Timeouts::default(),
            keep_alive: KEEP_ALIVE,
            compat: sabir_wire::Compat::default(),
            hosts,
            cors: CorsSettings { origins: self.cors_origins },
            card: CardSettings {
                name: None,
                description: None,
                organization: None,
                organization_url: None,
                version: env!("CARGO_PKG_VERSION").into(),
                documentation_url: None,
                icon_url: None,
                base: self.public_url.or_else(|| first.map(|address| format!("http://{address}"))),
                default_format: sabir_wire::CardFormat::Hybrid,
                max_age: CARD_MAX_AGE,
            },
        };
        Ok((App::new(engine.clone(), settings), engine))
    }
}

/// A server whose agents are at work and which listens nowhere by itself.
pub struct StartedServer {
    app: App,
    engine: Engine,
}

impl StartedServer {
    /// For calls without HTTP.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// For an HTTP server of your own. May be called more than once; all are the same server.
    pub fn service(&self) -> Service {
        Service::new(self.app.clone())
    }

    /// Takes no more tasks, and gives running turns so long to end. What is not over then is settled by the next start on
    /// the same store.
    pub async fn stop(&self, grace: Duration) {
        self.engine.stop(grace).await;
    }
}

/// A server that listens, for [`crate::testing`].
pub(crate) struct Listening {
    pub address: SocketAddr,
    pub engine: Engine,
    pub stop: watch::Sender<bool>,
    pub serving: tokio::task::JoinHandle<()>,
}

impl Listening {
    pub async fn start(server: Server) -> Result<Self, ServerError> {
        let listeners = bind(&"127.0.0.1:0").await?;
        let addresses = listeners.addresses();
        let address = addresses[0];
        let (app, engine) = server.start_app(Some(addresses)).await?;
        let (stop, mut stopped) = watch::channel(false);
        let until = async move { drop(stopped.wait_for(|stop| *stop).await) };
        let serving = tokio::spawn(listen(listeners, app, engine.clone(), until));
        Ok(Self { address, engine, stop, serving })
    }
}

async fn bind(address: &(impl ToSocketAddrs + std::fmt::Debug)) -> Result<Listeners, ServerError> {
    let failed = |reason: String| ServerError::Listen { address: format!("{address:?}"), reason };
    let addresses: Vec<SocketAddr> = address.to_socket_addrs().map_err(|error| failed(error.to_string()))?.collect();
    if addresses.is_empty() {
        return Err(failed("it names no address".into()));
    }
    Listeners::bind(&addresses).await.map_err(|unavailable| failed(unavailable.error.to_string()))
}

/// Serves until the future resolves and everything that runs has ended or has been stopped.
async fn listen(listeners: Listeners, app: App, engine: Engine, until: impl Future<Output = ()>) {
    let (close, closed) = watch::channel(false);
    let serving = listeners.serve(app, closed, LINGER);
    let stopping = async {
        until.await;
        engine.stop(GRACE).await;
        close.send_replace(true);
    };
    tokio::join!(serving, stopping);
}

/// Resolves at Ctrl-C or SIGTERM.
async fn interrupted() {
    use tokio::signal::unix::{SignalKind, signal};

    let interrupt = tokio::signal::ctrl_c();
    match signal(SignalKind::terminate()) {
        Ok(mut terminate) => {
            tokio::select! {
                _ = interrupt => {}
                _ = terminate.recv() => {}
            }
        }
        Err(_) => drop(interrupt.await),
    }
}

fn hosted(agents: Vec<(String, Arc<dyn Agent>, Limits)>) -> Result<Vec<Hosted>, ServerError> {
    let mut all: Vec<Hosted> = Vec::new();
    for (text, agent, limits) in agents {
        let refused = |reason: String| ServerError::AgentId { id: text.clone(), reason };
        // It is a part of addresses.
        let fits = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_' | '-');
        if !text.chars().all(fits) {
            return Err(refused("has other characters than letters, digits, `.`, `_` and `-`".into()));
        }
        let id = AgentId::parse(text.as_str()).map_err(|reason| refused(reason.to_string()))?;
        if all.iter().any(|other| other.id == id) {
            return Err(ServerError::SameAgent(text));
        }
        let mut hosted = Hosted::new(id, agent);
        if hosted.about.name.is_empty() {
            hosted.about.name = text;
        }
        hosted.limits = limits;
        hosted.is_default = all.is_empty();
        all.push(hosted);
    }
    if all.is_empty() { Err(ServerError::NoAgent) } else { Ok(all) }
}

fn open_store(url: &str) -> Result<Arc<dyn Store>, ServerError> {
    let failed = |reason: String| ServerError::Store { url: url.to_owned(), reason };
    if url == "memory:" {
        return Ok(Arc::new(MemoryStore::new()));
    }
    let Some(path) = url.strip_prefix("sqlite:").filter(|path| !path.is_empty()) else {
        return Err(failed("give `sqlite:PATH` or `memory:`".into()));
    };
    let path = PathBuf::from(path);
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(|error| failed(error.to_string()))?;
    }
    let store = SqliteStore::open(&path, Durability::PowerCut).map_err(|error| failed(error.to_string()))?;
    Ok(Arc::new(store))
}

/// The host of a URL, without its port.
fn host_of(url: &str) -> Option<&str> {
    let authority = url.split_once("://")?.1.split(['/', '?', '#']).next()?;
    match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next(),
        None => authority.split(':').next(),
    }
}

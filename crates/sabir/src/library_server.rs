//! The server as a value: agents, a store, and where to listen.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sabir_engine::{Agent, Builder, Engine, EngineSettings, Hosted, Limits};
use sabir_model::AgentId;
use sabir_outbound::EgressPolicy;
use sabir_outbound::jose::CardKey;
use sabir_outbound::webhooks::{DispatcherSettings, SealKey, Signer, SigningKey};
use sabir_server::{
    AddressRange, AdminAccess, App, AuthSettings, CardSettings, CatalogueAccess, Console, CorsSettings, GrpcAddress,
    HostCheck, HostName, Listeners, OpenAi, PeerLimit, RESERVED_AGENT_IDS, RequestLimits, ServerFacts, ServerSettings,
    Service, StoreAbout, Timeouts, TrustedProxies, is_path_segment,
};
use sabir_store::{Durability, MemoryStore, Outbox, SqliteStore, Store};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::card_signer::{card_signer, jwks};
use crate::webhooks::{Deliveries, Webhooks};

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
    offers_webhooks: bool,
    webhook_hosts: Vec<String>,
    webhook_ranges: Vec<String>,
    webhook_secret: Option<String>,
    webhook_signing_key: Option<String>,
    card_signing_key: Option<String>,
    store_key: Option<String>,
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
    /// What [`Server::allowed_hosts`] was given is no name.
    #[error("the host {0:?} is neither a name without a port, nor an IP address, nor `*`")]
    Host(String),
    /// The store is neither `memory:` nor `sqlite:PATH`, or it cannot be opened.
    #[error("the store {url:?} cannot be used: {reason}")]
    Store {
        /// What was given.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// What [`Server::webhook_hosts`] or [`Server::webhook_ranges`] was given cannot be read.
    #[error("webhooks: {0}")]
    WebhookReceiver(String),
    /// What [`Server::store_key`] was given is no key. The value is not repeated.
    #[error("the key of the store is not a key; `sabir key new` makes one")]
    StoreKey,
    /// What [`Server::webhook_signing_key`] was given is no key. The value is not repeated.
    #[error("the signing key of webhooks is not a signing key; `sabir key new --signing` makes one")]
    SigningKey,
    /// What [`Server::card_signing_key`] was given is no key. The value is not repeated.
    #[error("the signing key of cards cannot be used: {0}; `sabir key new --card` makes one")]
    CardKey(String),
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
        Self {
            agents: Vec::new(),
            store: "memory:".into(),
            public_url: None,
            hosts: None,
            cors_origins: Vec::new(),
            offers_webhooks: true,
            webhook_hosts: Vec::new(),
            webhook_ranges: Vec::new(),
            webhook_secret: None,
            webhook_signing_key: None,
            card_signing_key: None,
            store_key: None,
        }
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

    /// Names that requests may come to, beside IP addresses and `localhost`; `*` is any. [`Server::serve`] refuses others, so that a
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

    /// Callers cannot set webhooks. Without this they can, for receivers at public addresses.
    pub fn without_webhooks(mut self) -> Self {
        self.offers_webhooks = false;
        self
    }

    /// Hosts that webhooks may lead to, whatever their addresses are: names, or addresses, without scheme and port.
    pub fn webhook_hosts<H: Into<String>>(mut self, hosts: impl IntoIterator<Item = H>) -> Self {
        self.webhook_hosts.extend(hosts.into_iter().map(Into::into));
        self
    }

    /// Ranges of addresses that webhooks may lead to although they are not public, such as `10.0.0.0/8`.
    pub fn webhook_ranges<R: Into<String>>(mut self, ranges: impl IntoIterator<Item = R>) -> Self {
        self.webhook_ranges.extend(ranges.into_iter().map(Into::into));
        self
    }

    /// Deliveries are signed with this shared secret, as Standard Webhooks have it. After `whsec_` it is base64.
    pub fn webhook_secret(mut self, secret: impl Into<String>) -> Self {
        self.webhook_secret = Some(secret.into());
        self
    }

    /// Deliveries are signed with this key, which `sabir key new --signing` makes. Its public half is at
    /// `/.well-known/jwks.json`.
    pub fn webhook_signing_key(mut self, key: impl Into<String>) -> Self {
        self.webhook_signing_key = Some(key.into());
        self
    }

    /// Cards are signed with this key, which `sabir key new --card` makes; PEM is fine too. Its public half is at
    /// `/.well-known/jwks.json`. They are signed only if the server knows its address: by [`Server::public_url`], or because
    /// it listens on one that is no wildcard.
    pub fn card_signing_key(mut self, key: impl Into<String>) -> Self {
        self.card_signing_key = Some(key.into());
        self
    }

    /// The secrets of webhooks are encrypted in the store with this key, which `sabir key new` makes.
    pub fn store_key(mut self, key: impl Into<String>) -> Self {
        self.store_key = Some(key.into());
        self
    }

    /// Listens on the address and serves until Ctrl-C or SIGTERM; then running turns have ten seconds to end.
    ///
    /// # Errors
    /// Something that was given cannot be used; see [`ServerError`].
    pub async fn serve(self, address: impl ToSocketAddrs + std::fmt::Debug) -> Result<(), ServerError> {
        let listeners = bind(&address).await?;
        let started = self.start_app(Some(listeners.addresses())).await?;
        listen(listeners, started, interrupted()).await;
        Ok(())
    }

    /// Starts the agents without listening anywhere: tasks that an earlier process left behind are settled or resumed,
    /// and calls can be made by [`StartedServer::engine`] and [`StartedServer::service`].
    ///
    /// # Errors
    /// Something that was given cannot be used; see [`ServerError`].
    pub async fn start(self) -> Result<StartedServer, ServerError> {
        self.start_app(None).await
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
    async fn start_app(self, addresses: Option<Vec<SocketAddr>>) -> Result<StartedServer, ServerError> {
        let signing_key = self.signing_key()?;
        let card_key = self.card_signing_key.as_deref().map(CardKey::parse).transpose();
        let card_key = card_key.map_err(|why| ServerError::CardKey(why.to_string()))?;
        let jwks = jwks(signing_key.as_ref().filter(|_| self.offers_webhooks), card_key.as_ref());
        let webhooks = self.webhooks(signing_key)?;
        let hosted = hosted(self.agents)?;
        let public = self.public_url.as_deref().and_then(host_of).and_then(HostName::parse);
        let hosts = match (self.hosts, &addresses) {
            (None, None) => HostCheck::Off,
            (names, _) => host_check(names.unwrap_or_default(), public)?,
        };
        let file = open_file(&self.store)?;
        let (store, outbox): (Arc<dyn Store>, Arc<dyn Outbox>) = match &file {
            Some(file) => (file.clone(), file.clone()),
            None => {
                let memory = Arc::new(MemoryStore::new());
                (memory.clone(), memory)
            }
        };
        let mut builder = Builder::new(store.clone()).settings(EngineSettings::default());
        if let Some(webhooks) = &webhooks {
            builder = builder.webhooks(webhooks.admission(), outbox.clone());
        }
        for agent in hosted {
            builder = builder.agent(agent);
        }
        let engine = builder.start().await.map_err(|error| ServerError::Recovery(error.to_string()))?;
        let deliveries = webhooks.map(|webhooks| webhooks.start(store, outbox));
        let first =
            addresses.as_deref().and_then(<[SocketAddr]>::first).filter(|address| !address.ip().is_unspecified());
        let facts = ServerFacts {
            version: env!("CARGO_PKG_VERSION").into(),
            urls: first.iter().map(|address| format!("http://{address}")).collect(),
            store: match &file {
                Some(_) => StoreAbout { kind: "sqlite", place: Some(self.store.clone()), durability: None },
                None => StoreAbout { kind: "memory", ..StoreAbout::default() },
            },
            ..ServerFacts::default()
        };
        let settings = ServerSettings {
            body_limit: BODY_LIMIT,
            memory: MEMORY,
            max_connections: MAX_CONNECTIONS,
            per_peer: PeerLimit { most: MAX_CONNECTIONS / 4, exempt: AddressRange::LOOPBACK.to_vec() },
            timeouts: Timeouts::default(),
            keep_alive: KEEP_ALIVE,
            compat: sabir_wire::Compat::default(),
            hosts_beyond_loopback: hosts.clone(),
            hosts,
            trusted_proxies: TrustedProxies::default(),
            cors: CorsSettings { origins: self.cors_origins },
            auth: AuthSettings::default(),
            limits: RequestLimits::default(),
            admin: match self.public_url {
                Some(_) => AdminAccess::RefusedForPublicUrl,
                None => AdminAccess::Loopback,
            },
            // Whoever embeds the server has pages of its own.
            console: Console::Off,
            mcp: None,
            openai: OpenAi::Off,
            jwks,
            card_signer: card_key.map(card_signer),
            facts,
            metrics: None,
            call_observer: None,
            card: CardSettings {
                name: None,
                description: None,
                organization: None,
                organization_url: None,
                version: env!("CARGO_PKG_VERSION").into(),
                documentation_url: None,
                icon_url: None,
                catalogue: match self.public_url {
                    Some(_) => CatalogueAccess::Everybody,
                    None => CatalogueAccess::Callers,
                },
                grpc: match self.public_url {
                    Some(_) => GrpcAddress::Unknown,
                    None => GrpcAddress::OfBase,
                },
                base: self.public_url.or_else(|| first.map(|address| format!("http://{address}"))),
                default_format: sabir_wire::CardFormat::Hybrid,
                max_age: CARD_MAX_AGE,
            },
        };
        Ok(StartedServer { app: App::new(engine.clone(), settings), engine, deliveries, file })
    }

    fn signing_key(&self) -> Result<Option<SigningKey>, ServerError> {
        let key = self.webhook_signing_key.as_deref().map(SigningKey::parse).transpose();
        key.map_err(|_| ServerError::SigningKey)
    }

    /// `None`: the server offers none.
    fn webhooks(&self, signing_key: Option<SigningKey>) -> Result<Option<Webhooks>, ServerError> {
        let seal_key = self.store_key.as_deref().map(SealKey::parse).transpose().map_err(|_| ServerError::StoreKey)?;
        let mut policy = EgressPolicy::default();
        let malformed = |error: sabir_outbound::guard::MalformedEntry| ServerError::WebhookReceiver(error.to_string());
        for host in &self.webhook_hosts {
            policy.allow_host(host).map_err(malformed)?;
        }
        for range in &self.webhook_ranges {
            policy.allow_range(range).map_err(malformed)?;
        }
        let hmac_secret = self.webhook_secret.as_deref().map(Into::into);
        let signer = Signer { hmac_secret, key: signing_key };
        let settings = DispatcherSettings { seal_key, signer, ..DispatcherSettings::default() };
        Ok(self.offers_webhooks.then(|| Webhooks::new(policy, settings)))
    }
}

/// A server whose agents are at work and which listens nowhere by itself.
pub struct StartedServer {
    app: App,
    engine: Engine,
    /// `None`: the server offers no webhooks.
    deliveries: Option<Deliveries>,
    /// `None`: tasks are in memory.
    file: Option<Arc<SqliteStore>>,
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

    /// Takes no more tasks, gives running turns so long to end, and frees the file of the store, whoever still holds the
    /// engine or the service. What is not over then is settled by the next start on the same store.
    pub async fn stop(&self, grace: Duration) {
        let deadline = Instant::now() + grace.max(LINGER);
        self.engine.stop(grace).await;
        self.stop_deliveries(deadline).await;
        if self.file.is_some() {
            tokio::time::sleep(LINGER).await;
        }
        self.close().await;
    }

    async fn stop_deliveries(&self, deadline: Instant) {
        if let Some(deliveries) = &self.deliveries {
            deliveries.stop(deadline).await;
        }
    }

    async fn close(&self) {
        let Some(file) = self.file.clone() else { return };
        // It fails only if the runtime ends, and then the file is closed with the last who has it.
        let _ = tokio::task::spawn_blocking(move || file.close()).await;
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
        let started = server.start_app(Some(addresses)).await?;
        let engine = started.engine.clone();
        let (stop, mut stopped) = watch::channel(false);
        let until = async move { drop(stopped.wait_for(|stop| *stop).await) };
        let serving = tokio::spawn(listen(listeners, started, until));
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

/// Serves until the future resolves and everything that runs has ended or has been stopped. Then the store is closed.
async fn listen(listeners: Listeners, server: StartedServer, until: impl Future<Output = ()>) {
    let (close, closed) = watch::channel(false);
    let serving = listeners.serve(server.app.clone(), closed, LINGER);
    let stopping = async {
        until.await;
        let deadline = Instant::now() + GRACE;
        server.engine.stop(GRACE).await;
        server.stop_deliveries(deadline).await;
        close.send_replace(true);
    };
    tokio::join!(serving, stopping);
    server.close().await;
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
        if !is_path_segment(&text) {
            return Err(refused(
                "is a part of addresses, so it has to be 1 to 64 letters, digits, `.`, `_` and `-`".into(),
            ));
        }
        if RESERVED_AGENT_IDS.contains(&text.as_str()) {
            return Err(refused("is a path of the server".into()));
        }
        let id = AgentId::parse(text.as_str()).map_err(|reason| refused(reason.to_string()))?;
        if all.iter().any(|other| other.id == id) {
            return Err(ServerError::SameAgent(text));
        }
        let mut hosted = Hosted::new(id, agent).described_by(move |mut about| {
            if about.name.is_empty() {
                about.name.clone_from(&text);
            }
            about
        });
        hosted.limits = limits;
        hosted.is_default = all.is_empty();
        all.push(hosted);
    }
    if all.is_empty() { Err(ServerError::NoAgent) } else { Ok(all) }
}

/// `None`: it is in memory.
fn open_file(url: &str) -> Result<Option<Arc<SqliteStore>>, ServerError> {
    let failed = |reason: String| ServerError::Store { url: url.to_owned(), reason };
    if url == "memory:" {
        return Ok(None);
    }
    let Some(path) = url.strip_prefix("sqlite:").filter(|path| !path.is_empty()) else {
        return Err(failed("give `sqlite:PATH` or `memory:`".into()));
    };
    let path = PathBuf::from(path);
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(|error| failed(error.to_string()))?;
    }
    let store = SqliteStore::open(&path, Durability::PowerCut).map_err(|error| failed(error.to_string()))?;
    Ok(Some(Arc::new(store)))
}

fn host_check(names: Vec<String>, public: Option<HostName>) -> Result<HostCheck, ServerError> {
    if names.iter().any(|name| name == "*") {
        return Ok(HostCheck::Off);
    }
    let names = names.into_iter().map(|name| HostName::parse(&name).ok_or(ServerError::Host(name)));
    Ok(HostCheck::Names(names.chain(public.map(Ok)).collect::<Result<_, _>>()?))
}

/// The host of a URL, without its port.
fn host_of(url: &str) -> Option<&str> {
    let authority = url.split_once("://")?.1.split(['/', '?', '#']).next()?;
    match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next(),
        None => authority.split(':').next(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn refusal(ids: &[&str], hosts: &[&str]) -> String {
        let agent = |server: Server, id: &&str| {
            server.agent(*id, crate::agent("Greets", |turn| async move { turn.reply("hello").await }))
        };
        let mut server = ids.iter().fold(Server::new(), agent);
        if !hosts.is_empty() {
            server = server.allowed_hosts(hosts.iter().copied());
        }
        server.start().await.err().map_or_else(String::new, |error| error.to_string())
    }

    #[tokio::test]
    async fn what_cannot_be_served_is_refused_at_the_start() {
        let long = "x".repeat(65);
        for (ids, hosts, expected) in [
            (&["greeter", "a.b_c-1"][..], &[][..], ""),
            (&["greeter"], &["example.org", "::1", "*"], ""),
            (&[], &[], "a server needs an agent"),
            (&["a", "a"], &[], "two agents"),
            (&[""], &[], "1 to 64"),
            (&[".."], &[], "1 to 64"),
            (&["a/b"], &[], "1 to 64"),
            (&[long.as_str()], &[], "1 to 64"),
            (&["mcp"], &[], "path of the server"),
            (&["healthz"], &[], "path of the server"),
            (&["a"], &["example.org:8080"], "\"example.org:8080\" is neither"),
            (&["a"], &["https://example.org"], "\"https://example.org\" is neither"),
        ] {
            let refusal = refusal(ids, hosts).await;
            assert!(
                refusal.contains(expected) && expected.is_empty() == refusal.is_empty(),
                "{ids:?} {hosts:?}: {refusal}"
            );
        }
    }

    async fn call(address: SocketAddr, text: &str) -> (tokio::net::TcpStream, String) {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};

        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let body = format!(r#"{{"message":{{"messageId":"m","role":"ROLE_USER","parts":[{{"text":"{text}"}}]}}}}"#);
        let head = "POST /message:send HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
        let request = format!("{head}A2A-Version: 1.0\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut reply = vec![0; 1 << 16];
        let length = stream.read(&mut reply).await.unwrap();
        (stream, String::from_utf8_lossy(&reply[..length]).into_owned())
    }

    /// With an open connection, an open question, and somebody who still holds the engine.
    #[tokio::test]
    async fn a_stopped_server_frees_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let store = format!("sqlite:{}", folder.path().join("a.db").display());
        let server = || {
            let agent = crate::agent("Asks or panics", |turn| async move {
                if turn.message().text().contains("panic") {
                    panic!("on purpose");
                }
                turn.ask_text("which one?").await?;
                turn.reply("done").await
            });
            crate::testing::TestServer::start(Server::new().agent("a", agent).store(&store))
        };
        let mut engines = Vec::new();
        let mut connections = Vec::new();
        for _ in 0..3 {
            let started = server().await.unwrap();
            engines.push(started.engine().clone());
            let address = started.url().strip_prefix("http://").unwrap().parse().unwrap();
            for (text, state) in [("panic", "TASK_STATE_FAILED"), ("hello", "TASK_STATE_INPUT_REQUIRED")] {
                let (connection, reply) = call(address, text).await;
                assert!(reply.contains(state), "{reply}");
                connections.push(connection);
            }
            started.stop().await;
        }
    }
}

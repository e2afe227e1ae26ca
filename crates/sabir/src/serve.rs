//! `sabir serve`: puts the rooms together and runs them until it is told to stop.

use std::convert::Infallible;
use std::ffi::OsStr;
use std::io::{ErrorKind, IsTerminal, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::{Context, anyhow};
use futures_util::future::BoxFuture;
use sabir_agents::process;
use sabir_agents::program::{Host, keep_tidy};
use sabir_engine::{Builder, CallerLimits, Engine, EngineSettings, LeaseObserver};
use sabir_outbound::EgressPolicy;
use sabir_outbound::jose::CardKey;
use sabir_outbound::webhooks::{DispatcherSettings, SealKey, Signer, SigningKey};
use sabir_server::{
    AddressRange, AdminAccess, ApiKey, App, AuthSettings, CardSettings, CatalogueAccess, CertificateGrant, Console,
    CorsSettings, Credential, GrpcAddress, HostCheck, HostName, Listeners, OpenAi, PeerLimit, RequestLimits,
    ServerFacts, ServerSettings, SettingFact, Timeouts, Tls, TrustedProxies,
};
use sabir_store::{
    AuditLog, Cluster, Measured, MemoryStore, Outbox, PostgresSettings, PostgresStore, SqliteStore, Store, StoreError,
};
use tokio::sync::{Notify, oneshot, watch};
use tokio::time::{Instant, timeout_at};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::address_file::{self, AddressFile, ServerAddress, StartedBy};
use crate::card_signer::{card_signer, jwks};
use crate::config::{self, Config, LogFormat, PostgresUrl, Problems, StoreUrl};
use crate::dev_tls::DevCertificate;
use crate::hosting::{Surroundings, host};
use crate::identity_documents;
use crate::machine;
use crate::metrics::{Figures, MetricsListeners};
use crate::node_lock::NodeLock;
use crate::own_server::Companion;
use crate::server_facts;
use crate::signals::{Signals, StopRequest};
use crate::telemetry::Traces;
use crate::webhooks::{Deliveries, Webhooks};

/// What the answers of settled runs may take on their way out.
const LINGER: Duration = Duration::from_millis(500);
/// What killing the programs that are left may take.
const LAST_KILL: Duration = Duration::from_secs(1);
/// What threads may take to end when everything else has.
const THREADS: Duration = Duration::from_millis(500);
/// The exit code of a program that Ctrl-C has ended, as shells have it.
const INTERRUPTED: i32 = 130;

/// How lines of the log look to people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogStyle {
    Colored,
    Plain,
}

impl LogStyle {
    /// Colors are for terminals whose owner has not switched them off with `NO_COLOR`.
    pub fn choose(is_terminal: bool, no_color: Option<&OsStr>) -> Self {
        let is_unwanted = no_color.is_some_and(|value| !value.is_empty());
        if is_terminal && !is_unwanted { LogStyle::Colored } else { LogStyle::Plain }
    }
}

/// `settings` is what operators are shown of the configuration. `load` reads it again, when SIGHUP asks for it. A server with a
/// companion stops with that, too, and does not say on the standard output where it is.
pub fn run(
    config: Config,
    settings: Vec<SettingFact>,
    surroundings: Surroundings,
    style: LogStyle,
    load: Load,
    companion: Option<Companion>,
) -> anyhow::Result<()> {
    start_logging(&config, style);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start threads")?;
    let stopped = runtime.block_on(serve(config, settings, surroundings, load, companion));
    runtime.shutdown_timeout(THREADS);
    // Guards would end what is left, but for those that their programs have stopped. Not before nobody works any more: what
    // sees a program of its own killed would go on without it.
    process::end_programs(LAST_KILL);
    match stopped? {
        Stopped::InOrder => Ok(()),
        Stopped::AtOnce => std::process::exit(INTERRUPTED),
    }
}

/// How a server came to its end.
enum Stopped {
    InOrder,
    /// By a second Ctrl-C.
    AtOnce,
}

async fn serve(
    config: Config,
    settings: Vec<SettingFact>,
    surroundings: Surroundings,
    load: Load,
    companion: Option<Companion>,
) -> anyhow::Result<Stopped> {
    // Before the store is opened: two servers that are the same node would take each other's tasks.
    let node_lock = NodeLock::of(&config).map_err(|error| match config.store.local_file() {
        Some(file) => with_server_of_host(error, &file),
        None => error,
    })?;
    let OpenStore { store, outbox, audit, measured, cluster } = open_store(&config).await?;
    let figures = Figures::of(&config.metrics);
    let address_file = config.store.local_file().map(|file| AddressFile::claim(&file, (node_lock, store.clone())));
    let webhooks = webhooks(&config, figures.as_ref())?;
    let tls = open_tls(&config)?;
    let listeners = Listeners::bind(&config.server.listen).await.map_err(|unavailable| {
        let remedy = match unavailable.error.kind() {
            ErrorKind::AddrInUse => "; stop what uses it, or choose another with --port",
            ErrorKind::AddrNotAvailable => "; choose an address of this machine with --listen",
            ErrorKind::PermissionDenied => "; choose a port above 1023 with --port",
            _ => "",
        };
        anyhow!("cannot listen on {}: {}{remedy}", unavailable.address, unavailable.error)
    })?;
    let metrics_listeners = MetricsListeners::bind(&config.metrics).await?;
    let addresses = listeners.addresses();
    tell_agents_url(&config, &addresses, &surroundings.host);
    if config.card.signing_key.is_some() && public_base(&config, &addresses).is_none() {
        tracing::warn!("cards are not signed: on a wildcard address only server.public_url says what to vouch for");
    }
    let listeners = match &tls {
        Some(tls) => listeners.with_tls(tls.tls.clone()),
        None => listeners,
    };

    let mut builder = Builder::new(store.clone()).settings(engine_settings(&config));
    if let Some(webhooks) = &webhooks {
        builder = builder.webhooks(webhooks.admission(), outbox.clone());
    }
    if config.keeps_audit() {
        builder = builder.audit(audit, config.audit.keep);
    }
    if let Some(cluster) = &cluster {
        builder = builder.cluster(cluster.clone()).lease_observer(Arc::new(ProgramLease));
    }
    if let Some(figures) = &figures {
        measured.observe_commits(figures.store.clone());
        builder = builder.metrics(figures.engine.clone(), measured);
    }
    let node = cluster.as_ref().map(|_| config.cluster.node());
    let traces = Traces::start(&surroundings.host.variables, node.as_deref());
    if let Some(traces) = &traces {
        builder = builder.run_observer(traces.runs());
    }
    let agents = host(&config, &surroundings)?;
    for agent in agents.hosted {
        builder = builder.agent(agent);
    }
    for agent in agents.routed {
        builder = builder.routed_agent(agent);
    }
    // Tasks that are taken up wait for that with their programs.
    process::end_leftovers_of_dead_servers();
    let engine = builder.start().await.context("cannot take up the tasks of the store")?;
    let deliveries = webhooks.map(|webhooks| webhooks.start(store, outbox));
    let max_connections = surroundings.descriptors.connections(config.program_runs());
    let urls = local_urls(&config, &addresses);
    let facts = server_facts::of_config(&config, settings, urls.clone());
    let metrics = figures.as_ref().map(Figures::metrics);
    let call_observer = traces.as_ref().map(Traces::calls);
    let settings = server_settings(&config, max_connections, &addresses, facts);
    let settings = ServerSettings { metrics, call_observer, ..settings };
    let app = App::new(engine.clone(), settings);

    tokio::spawn(process::reap_orphans());
    tokio::spawn(keep_tidy(surroundings.host.clone(), engine.clone()));
    let (close, closed) = watch::channel(false);
    let metrics_addresses = metrics_listeners.as_ref().map(MetricsListeners::addresses).unwrap_or_default();
    if let Some(listeners) = metrics_listeners {
        listeners.serve(&app, closed.clone(), LINGER);
    }
    let mut serving = tokio::spawn(listeners.serve(app.clone(), closed, LINGER));
    let certificates = tls.as_ref().map(|tls| {
        let asked = Arc::new(Notify::new());
        tokio::spawn(tls.tls.clone().keep_current(asked.clone()));
        asked
    });
    let reload = Arc::new(Notify::new());
    tokio::spawn(keep_credentials_current(reload.clone(), certificates, app, load));
    let mut signals = Signals::new(reload)?;
    let authority = tls.as_ref().and_then(|tls| tls.dev.as_ref()).map(DevCertificate::authority);
    let started_by = if companion.is_some() { StartedBy::Mcp } else { StartedBy::Serve };
    let address = urls.first().map(|url| ServerAddress { url: url.clone(), started_by, authority: authority.clone() });
    if let (Some(file), Some(address)) = (&address_file, &address)
        && let Err(error) = file.write(address)
    {
        tracing::warn!(%error, "cannot write the address file; client commands need --url");
    }
    let node = match &cluster {
        Some(cluster) => Some(OwnNode::of(&**cluster).await.context("cannot read the list of nodes")?),
        None => None,
    };
    let gone = match (companion, address) {
        (Some(Companion { ready, gone }), Some(address)) => {
            ready(address);
            Some(gone)
        }
        _ => {
            announce(&config, &urls, authority.as_deref(), node.as_ref(), &metrics_addresses)?;
            None
        }
    };
    let mut latest = tokio::select! {
        request = signals.next() => request,
        () = dropped(gone) => StopRequest::Stop,
    };
    let grace = config.server.grace;
    tracing::info!("stopping; runs have {grace:?} to finish; a second signal ends them now");
    let (hurry, hurried) = watch::channel(false);
    let mut stopping = pin!(async {
        stop(&engine, deliveries.as_ref(), &config.server, &surroundings.host, cluster.is_some(), hurried).await;
        close.send_replace(true);
        (&mut serving).await
    });
    let ended = loop {
        tokio::select! {
            ended = stopping.as_mut() => break ended,
            next = signals.next() => {
                if (latest, next) == (StopRequest::Interrupt, StopRequest::Interrupt) {
                    // The log is whole at any moment.
                    tracing::warn!("ended at once; the next start settles what was running");
                    return Ok(Stopped::AtOnce);
                }
                latest = next;
                hurry.send_replace(true);
            }
        }
    };
    ended.context("the server broke off")?;
    if let Some(traces) = traces {
        traces.stop().await;
    }
    tracing::info!("stopped");
    Ok(Stopped::InOrder)
}

/// Resolves when the companion of this server has gone.
async fn dropped(gone: Option<oneshot::Receiver<Infallible>>) {
    match gone {
        Some(gone) => drop(gone.await),
        None => std::future::pending().await,
    }
}

/// The guards of programs pause them when the lease of this node is over, whatever this process does then.
struct ProgramLease;

impl LeaseObserver for ProgramLease {
    fn extended(&self, until: Instant) {
        process::set_run_until(Some(until.into_std()));
    }

    fn lost(&self) -> BoxFuture<'static, ()> {
        Box::pin(async {
            end_programs().await;
        })
    }
}

/// Kills all programs, and says whether none is left. For a runtime that works on.
async fn end_programs() -> bool {
    tokio::task::spawn_blocking(|| process::end_programs(LAST_KILL)).await.unwrap_or(false)
}

/// Returns when nothing runs any more and balancers have had their time to notice; requests are answered meanwhile.
async fn stop(
    engine: &Engine,
    deliveries: Option<&Deliveries>,
    server: &config::ServerSection,
    host: &Host,
    is_node: bool,
    mut hurried: watch::Receiver<bool>,
) {
    // Answers need a moment to go out.
    let grace = server.grace.saturating_sub(LINGER);
    let deadline = Instant::now() + grace;
    let in_order = async {
        let (_, _, _) =
            tokio::join!(engine.stop(grace), timeout_at(deadline, host.warm.close()), tokio::time::sleep(server.drain));
        // Changes that are not kept by then are kept by the next start.
        let _ = timeout_at(deadline, host.worktrees.until_unused()).await;
        let _ = timeout_at(deadline, process::until_no_program_runs()).await;
        // Last, since runs that end while the server stops have something to send too.
        if let Some(deliveries) = deliveries {
            deliveries.stop(deadline).await;
        }
    };
    tokio::select! {
        () = in_order => {}
        _ = hurried.wait_for(|hurry| *hurry) => engine.stop_now().await,
    }
    // Once this node has left, others may run its tasks, and no program of it may run beside theirs.
    if is_node && !end_programs().await {
        tracing::warn!("some programs cannot be killed; other nodes get the tasks of this one when its lease is over");
        return;
    }
    engine.leave_cluster().await;
}

/// One object in its roles.
struct OpenStore {
    store: Arc<dyn Store>,
    outbox: Arc<dyn Outbox>,
    audit: Arc<dyn AuditLog>,
    measured: Arc<dyn Measured>,
    /// Where other servers share the store.
    cluster: Option<Arc<dyn Cluster>>,
}

impl OpenStore {
    fn new<S: Store + Outbox + AuditLog + Measured>(store: S) -> Self {
        Self::of(Arc::new(store))
    }

    fn of<S: Store + Outbox + AuditLog + Measured>(store: Arc<S>) -> Self {
        Self { store: store.clone(), outbox: store.clone(), audit: store.clone(), measured: store, cluster: None }
    }
}

async fn open_store(config: &Config) -> anyhow::Result<OpenStore> {
    match &config.store.url {
        StoreUrl::Memory => Ok(OpenStore::new(MemoryStore::new())),
        StoreUrl::Sqlite(path) => {
            make_folder_of(path)?;
            let opened = SqliteStore::open(path, config.store.durability);
            let store = opened.map_err(|error| with_server_of_host(error.into(), path))?;
            Ok(OpenStore::new(store))
        }
        StoreUrl::Postgres(url) => open_postgres(url, &config.cluster).await,
    }
}

/// Names the server that has the store, if it is one that nobody has started with `serve`.
fn with_server_of_host(error: anyhow::Error, local_file: &Path) -> anyhow::Error {
    match address_file::read(local_file) {
        Some(ServerAddress { url, started_by: StartedBy::Mcp, .. }) => error.context(format!(
            "`sabir mcp` hosts the agents of this store, at {url}; close the program that has started it, and start this \
             server first: `sabir mcp` then attaches to it"
        )),
        _ => error,
    }
}

/// Waits up to 30 seconds for a database that cannot be reached, since both may start at the same time.
async fn open_postgres(url: &PostgresUrl, cluster: &config::ClusterSection) -> anyhow::Result<OpenStore> {
    let settings = PostgresSettings {
        url: url.with_password().to_owned(),
        node_name: cluster.node().into(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        beat: cluster.beat,
        grace: cluster.grace,
        home_timeout: cluster.home_timeout,
        start_timeout: Duration::from_secs(30),
        writers: cluster.writers,
    };
    let store = Arc::new(PostgresStore::open(settings).await.with_context(|| format!("cannot open {url}"))?);
    Ok(OpenStore { cluster: Some(store.clone()), ..OpenStore::of(store) })
}

/// This server among the nodes, as the start line shows it.
struct OwnNode {
    name: String,
    /// Whether the database notifies it of changes; else it polls.
    receives_hints: bool,
}

impl OwnNode {
    async fn of(cluster: &dyn Cluster) -> Result<Self, StoreError> {
        let members = cluster.members().await?;
        let receives_hints = members.iter().any(|member| member.is_this && member.receives_hints);
        Ok(Self { name: cluster.node_name().to_string(), receives_hints })
    }

    fn notification_mode(&self) -> &'static str {
        match self.receives_hints {
            true => "listening to other nodes",
            false => "polling: a pooler is between",
        }
    }
}

/// The TLS of a server, and where its certificate comes from if nobody else gave it one.
struct OpenedTls {
    tls: Arc<Tls>,
    dev: Option<DevCertificate>,
}

/// `None`: the server speaks HTTP. The configuration has checked that the settings belong together.
fn open_tls(config: &Config) -> anyhow::Result<Option<OpenedTls>> {
    let server = &config.server;
    let dev = match server.dev_tls {
        true => {
            let local_file = config.store.local_file();
            Some(DevCertificate::beside(local_file.as_deref(), machine::own_name().as_deref())?)
        }
        false => None,
    };
    let settings = match &dev {
        Some(dev) => Some(dev.settings(config::client_certificates(server))),
        None => config::tls_settings(server),
    };
    let Some(settings) = settings else { return Ok(None) };
    let tls = Tls::load(settings).map_err(|error| anyhow!("TLS {error}"))?;
    if tls.not_after().is_some_and(|not_after| not_after < SystemTime::now()) {
        tracing::warn!("the certificate of server.tls_cert has expired, so clients will refuse it; renew it");
    }
    Ok(Some(OpenedTls { tls, dev }))
}

/// `None`: they are switched off. The configuration has checked every entry and key.
fn webhooks(config: &Config, figures: Option<&Figures>) -> anyhow::Result<Option<Webhooks>> {
    let push = &config.push;
    if !push.enabled {
        return Ok(None);
    }
    let mut policy = EgressPolicy::default();
    for host in &push.allow_hosts {
        policy.allow_host(host)?;
    }
    for range in &push.allow_cidrs {
        policy.allow_range(range)?;
    }
    policy.restrict_ports(push.ports.clone());
    let seal_key = config.store.key.as_ref().map(|key| SealKey::parse(key.as_str())).transpose()?;
    let signing_key = push.signing_key.as_ref().map(|key| SigningKey::parse(key.as_str())).transpose()?;
    let hmac_secret = push.hmac_secret.as_ref().map(|secret| secret.as_str().into());
    let settings = DispatcherSettings {
        timeout: push.timeout,
        give_up_after: push.give_up_after,
        per_receiver: push.per_receiver,
        seal_key,
        signer: Signer { hmac_secret, key: signing_key },
        counts: figures.map(|figures| figures.deliveries.clone()).unwrap_or_default(),
        ..DispatcherSettings::default()
    };
    Ok(Some(Webhooks::new(policy, settings)))
}

fn make_folder_of(path: &Path) -> anyhow::Result<()> {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => std::fs::create_dir_all(folder).with_context(|| {
            format!("cannot make the folder {}; choose another file with --store sqlite:PATH", folder.display())
        }),
        _ => Ok(()),
    }
}

fn engine_settings(config: &Config) -> EngineSettings {
    EngineSettings {
        max_wait: config.send.max_wait,
        recovery: config.recovery.running,
        retention: config.retention,
        limits: CallerLimits::default()
            .open_streams(config.limits.open_streams)
            .stored_bytes(config.limits.stored_bytes.map(|bytes| bytes as u64)),
        delegation: config.delegation,
    }
}

fn server_settings(
    config: &Config,
    max_connections: usize,
    addresses: &[SocketAddr],
    facts: ServerFacts,
) -> ServerSettings {
    let card = &config.card;
    // The configuration has checked the keys.
    let signing_key = config.push.signing_key.as_ref().filter(|_| config.push.enabled);
    let signing_key = signing_key.and_then(|key| SigningKey::parse(key.as_str()).ok());
    let card_key = card.signing_key.as_ref().and_then(|key| CardKey::parse(key.as_str()).ok());
    ServerSettings {
        body_limit: config.server.body_limit,
        memory: config.server.memory,
        max_connections,
        per_peer: peer_limit(config, max_connections),
        timeouts: Timeouts::default(),
        keep_alive: config.server.keep_alive,
        compat: config.compat,
        hosts: host_check(&config.server),
        // A page that makes its own name lead here cannot add a header with a credential; a browser shows certificates by
        // itself.
        hosts_beyond_loopback: match config.auth.has_headers() && config.server.tls_client_ca.is_none() {
            true => HostCheck::Off,
            false => host_check(&config.server),
        },
        trusted_proxies: TrustedProxies(config.server.trusted_proxies.clone()),
        cors: CorsSettings { origins: config.server.cors_origins.clone() },
        auth: auth_settings(config),
        limits: RequestLimits { requests_per_second: config.limits.requests_per_second, burst: config.limits.burst },
        admin: match &config.server {
            server if server.allow_open => AdminAccess::RefusedForAllowOpen,
            server if server.public_url.is_some() => AdminAccess::RefusedForPublicUrl,
            _ => AdminAccess::Loopback,
        },
        console: if config.console.enabled { Console::Served } else { Console::Off },
        mcp: config.mcp.enabled.then_some(config.mcp.wait),
        openai: if config.openai.enabled { OpenAi::Served } else { OpenAi::Off },
        jwks: jwks(signing_key.as_ref(), card_key.as_ref()),
        card_signer: card_key.map(card_signer),
        facts,
        metrics: None,
        call_observer: None,
        card: CardSettings {
            name: card.name.clone(),
            description: card.description.clone(),
            organization: card.organization.clone(),
            organization_url: card.organization_url.clone(),
            version: card.version.clone().unwrap_or_else(|| env!("CARGO_PKG_VERSION").into()),
            documentation_url: card.documentation_url.clone(),
            icon_url: card.icon_url.clone(),
            base: public_base(config, addresses),
            grpc: match (&config.server.public_grpc, &config.server.public_url) {
                (Some(address), _) => GrpcAddress::At(address.clone()),
                (None, Some(_)) => GrpcAddress::Unknown,
                (None, None) => GrpcAddress::OfBase,
            },
            default_format: match card.profile {
                config::CardProfile::A2a if card.pure => sabir_wire::CardFormat::V1,
                config::CardProfile::A2a => sabir_wire::CardFormat::Hybrid,
                config::CardProfile::Gateway => sabir_wire::CardFormat::Gateway,
            },
            max_age: card.max_age,
            catalogue: match config.server.public_url {
                Some(_) => CatalogueAccess::Everybody,
                None => CatalogueAccess::Callers,
            },
        },
    }
}

/// Reads the configuration again.
pub type Load = Box<dyn Fn() -> Result<Config, Problems> + Send + Sync>;

/// On SIGHUP: the certificates and the listed tokens and keys. What else has changed in the file waits for a restart.
async fn keep_credentials_current(asked: Arc<Notify>, certificates: Option<Arc<Notify>>, app: App, load: Load) {
    loop {
        asked.notified().await;
        if let Some(certificates) = &certificates {
            certificates.notify_one();
        }
        let (tokens, api_keys) = match load() {
            Ok(config) => listed_credentials(&config.auth),
            Err(problems) => {
                tracing::warn!(%problems, "SIGHUP: the configuration has mistakes; nothing of it was reloaded");
                continue;
            }
        };
        match app.reload_credentials(&tokens, &api_keys) {
            Ok(()) => tracing::info!(
                tokens = tokens.len(),
                api_keys = api_keys.len(),
                "SIGHUP: tokens and API keys were reloaded; other settings need a restart"
            ),
            Err(reason) => tracing::warn!(reason, "SIGHUP: tokens and API keys were not reloaded"),
        }
    }
}

/// The tokens and API keys that the configuration lists.
fn listed_credentials(auth: &config::AuthSection) -> (Vec<Credential>, Vec<ApiKey>) {
    let named = auth.token.iter().filter_map(config::CredentialConfig::credential);
    let key = |key: &config::CredentialConfig| {
        key.credential().map(|credential| ApiKey { header: key.header.clone(), credential })
    };
    (auth.tokens.iter().cloned().chain(named).collect(), auth.api_key.iter().filter_map(key).collect())
}

fn auth_settings(Config { auth, server, agents, .. }: &Config) -> AuthSettings {
    // Scopes that agents name count in tokens too.
    let approvers: Vec<String> = agents.iter().filter_map(|agent| agent.approver.clone()).collect();
    let with_approvers = auth.issuers.iter().cloned().map(|mut issuer| {
        issuer.own_scopes.extend(approvers.iter().cloned());
        issuer
    });
    let issuers = identity_documents::issuers(with_approvers);
    let issuers = issuers.expect("the configuration has checked the addresses");
    // Not waited for: the server starts without its issuers.
    issuers.prefetch();
    let (tokens, api_keys) = listed_credentials(auth);
    AuthSettings {
        tokens,
        api_keys,
        issuers: Arc::new(issuers),
        certificates: server
            .tls_client_ca
            .is_some()
            .then(|| CertificateGrant { scopes: auth.certificate_scopes.clone() }),
    }
}

/// The names that requests may come to: those that are allowed, the machine's own, and that of the public address.
fn host_check(server: &config::ServerSection) -> HostCheck {
    if server.allowed_hosts.iter().any(|host| host == "*") {
        return HostCheck::Off;
    }
    let public = server.public_url.as_deref().and_then(config::host_of_url).map(str::to_owned);
    let names = server.allowed_hosts.iter().cloned().chain(machine::own_name()).chain(public);
    HostCheck::Names(names.filter_map(|name| HostName::parse(&name)).collect())
}

/// A quarter of all connections unless the settings say otherwise, and enough for a few busy clients behind one address.
fn peer_limit(config: &Config, max_connections: usize) -> PeerLimit {
    let most = config.limits.connections_per_peer.unwrap_or((max_connections / 4).max(64));
    let exempt = AddressRange::LOOPBACK.into_iter().chain(config.server.trusted_proxies.iter().copied()).collect();
    PeerLimit { most, exempt }
}

/// Where clients reach the server. With a wildcard address only the client knows, so the request says; behind a proxy
/// that says so it is the proxy's name.
fn public_base(config: &Config, addresses: &[SocketAddr]) -> Option<String> {
    let is_direct = config.server.trusted_proxies.is_empty();
    let first = addresses.first().filter(|address| !address.ip().is_unspecified() && is_direct);
    config.server.public_url.clone().or_else(|| first.map(|address| format!("{}://{address}", config.server.scheme())))
}

/// Says where to go next: a few lines for a person, one line of JSON for a program.
fn announce(
    config: &Config,
    urls: &[String],
    authority: Option<&Path>,
    node: Option<&OwnNode>,
    metrics: &[SocketAddr],
) -> anyhow::Result<()> {
    let mut out = std::io::stdout();
    let Some(url) = urls.first() else { return Ok(()) };
    let store = match &config.store.url {
        StoreUrl::Memory => "memory: (gone when the server stops)".to_owned(),
        StoreUrl::Sqlite(path) => std::path::absolute(path).unwrap_or_else(|_| path.clone()).display().to_string(),
        StoreUrl::Postgres(url) => url.to_string(),
    };
    let metrics: Vec<String> =
        metrics.iter().map(|address| format!("http://{}/metrics", reachable(*address))).collect();
    let written = if out.is_terminal() {
        // Whoever names no server finds the authority of the local one.
        let (trust, server) = match authority {
            Some(file) => {
                let file = file.display();
                (format!("\n  trust   {file} (made for this machine; clients need it)"), String::new())
            }
            None => (String::new(), format!("{url} ")),
        };
        let agents: Vec<String> = config.agents.iter().map(|agent| agent.id.clone()).collect();
        writeln!(
            out,
            "Sabir {version} serves {agents} on {all}\n\
             \n  card    {url}/.well-known/agent-card.json\n{console}  tasks   {store}{node}{trust}{figures}\n\
             \nTry it:\n\n  {credential}sabir send {server}hello\n\
             \nCtrl-C stops it.",
            version = env!("CARGO_PKG_VERSION"),
            agents = agents.join(", "),
            all = urls.join(", "),
            console = if config.console.enabled { format!("  console {url}/console\n") } else { String::new() },
            figures = metrics.first().map(|url| format!("\n  metrics {url}")).unwrap_or_default(),
            node = node
                .map(|node| format!("\n  node    {} ({})", node.name, node.notification_mode()))
                .unwrap_or_default(),
            credential = if config.auth.has_headers() { "SABIR_TOKEN=$TOKEN " } else { "" },
        )
    } else {
        let mut line = serde_json::json!({
            "url": url,
            "urls": urls,
            "card": format!("{url}/.well-known/agent-card.json"),
            "store": store,
            "version": env!("CARGO_PKG_VERSION"),
            "pid": std::process::id(),
        });
        if config.console.enabled {
            line["console"] = format!("{url}/console").into();
        }
        if let Some(node) = node {
            line["node"] = node.name.as_str().into();
            line["notifications"] = node.notification_mode().into();
        }
        if !metrics.is_empty() {
            line["metrics"] = metrics.into();
        }
        if let Some(file) = authority {
            line["ca"] = file.display().to_string().into();
        }
        writeln!(out, "{line}")
    };
    match written.and_then(|()| out.flush()) {
        // Nobody reads it; the server is there all the same.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot say where the server is"),
    }
}

/// Where the server is reached from its own machine, at each of its addresses.
fn local_urls(config: &Config, addresses: &[SocketAddr]) -> Vec<String> {
    let scheme = config.server.scheme();
    addresses.iter().map(|address| format!("{scheme}://{}", reachable(*address))).collect()
}

/// Tells programs where they ask other agents. They get that with their next turn.
fn tell_agents_url(config: &Config, addresses: &[SocketAddr], host: &Host) {
    let own = addresses.iter().map(|address| reachable(*address));
    let nearest = own.min_by_key(|address| !address.ip().is_loopback()).filter(|_| config.mcp.enabled);
    if let Some(address) = nearest {
        // A server listens once, so nobody has set it before.
        let _ = host.agents_url.set(format!("{}://{address}/mcp", config.server.scheme()));
    }
}

/// A wildcard address is no place to connect to.
pub fn reachable(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(v4) if v4.ip().is_unspecified() => SocketAddr::from(([127, 0, 0, 1], v4.port())),
        SocketAddr::V6(v6) if v6.ip().is_unspecified() => SocketAddr::from((std::net::Ipv6Addr::LOCALHOST, v6.port())),
        address => address,
    }
}

fn start_logging(config: &Config, style: LogStyle) {
    let info = || Targets::new().with_default(LevelFilter::INFO);
    let filter = config.log.level.parse().unwrap_or_else(|_| info());
    let builder = tracing_subscriber::fmt()
        .with_max_level(LevelFilter::TRACE)
        .with_writer(std::io::stderr)
        // A line that cannot be written is lost; to complain about that on the same stream would panic.
        .log_internal_errors(false);
    // A second start in one process keeps the first logger; there is nothing to say about it.
    let _ = match config.log.format {
        LogFormat::Text => {
            builder.with_ansi(style == LogStyle::Colored).with_target(false).finish().with(filter).try_init()
        }
        LogFormat::Json => builder.json().finish().with(filter).try_init(),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colors_are_for_terminals_that_want_them() {
        for (is_terminal, no_color, expected) in [
            (true, None, LogStyle::Colored),
            (true, Some(""), LogStyle::Colored),
            (true, Some("1"), LogStyle::Plain),
            (true, Some("0"), LogStyle::Plain),
            (false, None, LogStyle::Plain),
            (false, Some("1"), LogStyle::Plain),
        ] {
            assert_eq!(LogStyle::choose(is_terminal, no_color.map(OsStr::new)), expected, "{is_terminal} {no_color:?}");
        }
    }
}

//! `sabir serve`: puts the rooms together and runs them until it is told to stop.

use std::io::{ErrorKind, IsTerminal, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use sabir_engine::{Builder, Engine, Recovery, RetentionPolicy, Settings};
use sabir_server::{
    App, CardProfile, CardSettings, CorsSettings, HostCheck, HostName, Listeners, ServerSettings, Timeouts,
};
use sabir_store::{Durability, MemoryStore, SqliteStore, Store};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::config::{self, Config, LogFormat, StoreUrl};
use crate::hosting::{Surroundings, host};
use crate::machine;

/// What the answers of settled runs may take on their way out.
const LINGER: Duration = Duration::from_secs(2);

pub fn run(config: Config, surroundings: Surroundings) -> anyhow::Result<()> {
    start_logging(&config);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start threads")?;
    runtime.block_on(serve(config, surroundings))
}

async fn serve(config: Config, surroundings: Surroundings) -> anyhow::Result<()> {
    let store = open_store(&config)?;
    let listeners = Listeners::bind(&config.server.listen).await.map_err(|unavailable| {
        let remedy = match unavailable.error.kind() {
            ErrorKind::AddrInUse => "; stop what uses it, or choose another with --port",
            ErrorKind::AddrNotAvailable => "; choose an address of this machine with --listen",
            ErrorKind::PermissionDenied => "; choose a port above 1023 with --port",
            _ => "",
        };
        anyhow!("cannot listen on {}: {}{remedy}", unavailable.address, unavailable.error)
    })?;
    let addresses = listeners.addresses();

    let mut builder = Builder::new(store).settings(engine_settings(&config));
    for agent in host(&config, &surroundings)? {
        builder = builder.agent(agent);
    }
    let engine = builder.start().await.context("cannot take up the tasks of the store")?;
    let max_connections = surroundings.descriptors.connections(config.program_runs());
    let app = App::new(engine.clone(), server_settings(&config, max_connections, &addresses));

    let (closing, closed) = watch::channel(false);
    let grace = config.server.grace;
    let (hurry, hurried) = watch::channel(false);
    let stopped = stop(engine, grace, hurried);
    let mut serving = tokio::spawn(listeners.serve(app, closed, stopped, LINGER));
    let mut signals = Signals::new()?;
    announce(&config, &addresses)?;
    signals.next().await;
    tracing::info!("stopping; runs have {grace:?} to finish; a second signal ends them now");
    closing.send_replace(true);
    let ended = tokio::select! {
        ended = &mut serving => ended,
        () = signals.next() => {
            hurry.send_replace(true);
            serving.await
        }
    };
    ended.context("the server broke off")?;
    tracing::info!("stopped");
    Ok(())
}

/// Lets runs finish for a while, or settles them at once when somebody is in a hurry.
async fn stop(engine: Engine, grace: Duration, mut hurried: watch::Receiver<bool>) {
    let hurry = async { drop(hurried.wait_for(|hurry| *hurry).await) };
    tokio::select! {
        () = engine.stop(grace) => {}
        () = hurry => engine.stop(Duration::ZERO).await,
    }
}

/// What asks a server to stop.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    /// The terminal it was started from has closed.
    hangup: Signal,
}

impl Signals {
    fn new() -> anyhow::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?,
            interrupt: signal(SignalKind::interrupt()).context("cannot listen for Ctrl-C")?,
            hangup: signal(SignalKind::hangup()).context("cannot listen for SIGHUP")?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
            _ = self.hangup.recv() => {}
        }
    }
}

fn open_store(config: &Config) -> anyhow::Result<Arc<dyn Store>> {
    match &config.store.url {
        StoreUrl::Memory => Ok(Arc::new(MemoryStore::new())),
        StoreUrl::Sqlite(path) => {
            make_folder_of(path)?;
            let durability = match config.store.durability {
                config::Durability::PowerCut => Durability::PowerCut,
                config::Durability::Process => Durability::Process,
            };
            Ok(Arc::new(SqliteStore::open(path, durability)?))
        }
    }
}

fn make_folder_of(path: &Path) -> anyhow::Result<()> {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => std::fs::create_dir_all(folder).with_context(|| {
            format!("cannot make the folder {}; choose another file with --store sqlite:PATH", folder.display())
        }),
        _ => Ok(()),
    }
}

fn engine_settings(config: &Config) -> Settings {
    Settings {
        max_wait: config.send.max_wait,
        recovery: match config.recovery.running {
            config::RunningTasks::Fail => Recovery::Fail,
            config::RunningTasks::Requeue => Recovery::Requeue,
        },
        retention: RetentionPolicy {
            max_age: config.retention.max_age,
            max_tasks: config.retention.max_tasks,
            waiting: config.retention.waiting,
        },
    }
}

fn server_settings(config: &Config, max_connections: usize, addresses: &[SocketAddr]) -> ServerSettings {
    let card = &config.card;
    ServerSettings {
        body_limit: config.server.body_limit,
        memory: config.server.memory,
        max_connections,
        timeouts: Timeouts::default(),
        keep_alive: config.server.keep_alive,
        compat: sabir_wire::Compat {
            strict: config.compat.strict,
            cancel_terminal: match config.compat.cancel_terminal {
                config::CancelTerminal::Auto => sabir_wire::CancelTerminal::Auto,
                config::CancelTerminal::Error => sabir_wire::CancelTerminal::Error,
                config::CancelTerminal::Noop => sabir_wire::CancelTerminal::Noop,
            },
            terminal_message: match config.compat.terminal_message {
                config::TerminalMessage::Error => sabir_wire::TerminalMessage::Error,
                config::TerminalMessage::NewTask => sabir_wire::TerminalMessage::NewTask,
            },
        },
        hosts: host_check(&config.server),
        cors: CorsSettings { origins: config.server.cors_origins.clone() },
        card: CardSettings {
            name: card.name.clone(),
            description: card.description.clone(),
            organization: card.organization.clone(),
            organization_url: card.organization_url.clone(),
            version: card.version.clone().unwrap_or_else(|| env!("CARGO_PKG_VERSION").into()),
            documentation_url: card.documentation_url.clone(),
            icon_url: card.icon_url.clone(),
            base: public_base(config, addresses),
            pure: card.pure,
            profile: match card.profile {
                config::CardProfile::A2a => CardProfile::A2a,
                config::CardProfile::Gateway => CardProfile::Gateway,
            },
            max_age: card.max_age,
        },
    }
}

/// The names that requests may come to: those that are allowed, the machine's own, and that of the public address.
fn host_check(server: &config::Server) -> HostCheck {
    if server.allowed_hosts.iter().any(|host| host == "*") {
        return HostCheck::Off;
    }
    let public = server.public_url.as_deref().and_then(config::host_of_url).map(str::to_owned);
    let names = server.allowed_hosts.iter().cloned().chain(machine::own_name()).chain(public);
    HostCheck::Names(names.filter_map(|name| HostName::parse(&name)).collect())
}

/// Where clients reach the server. With a wildcard address only the client knows, so the request says.
fn public_base(config: &Config, addresses: &[SocketAddr]) -> Option<String> {
    let first = addresses.first().filter(|address| !address.ip().is_unspecified());
    config.server.public_url.clone().or_else(|| first.map(|address| format!("http://{address}")))
}

/// Says where to go next: a few lines for a person, one line of JSON for a program.
fn announce(config: &Config, addresses: &[SocketAddr]) -> anyhow::Result<()> {
    let mut out = std::io::stdout();
    let urls: Vec<String> = addresses.iter().map(|address| format!("http://{}", reachable(*address))).collect();
    let Some(url) = urls.first() else { return Ok(()) };
    let store = match &config.store.url {
        StoreUrl::Memory => "memory: (gone when the server stops)".to_owned(),
        StoreUrl::Sqlite(path) => std::path::absolute(path).unwrap_or_else(|_| path.clone()).display().to_string(),
    };
    let written = if out.is_terminal() {
        let agents: Vec<String> = config.agents.iter().map(|agent| agent.id.clone()).collect();
        writeln!(
            out,
            "Sabir {version} serves {agents} on {all}\n\
             \n  card    {url}/.well-known/agent-card.json\n  tasks   {store}\n\
             \nTry it:\n\n  curl -s {url}/message:send -H 'Content-Type: application/json' \\\n       -d '{{\"message\":{{\"messageId\":\"1\",\"role\":\"ROLE_USER\",\"parts\":[{{\"text\":\"hello\"}}]}}}}'\n\
             \nCtrl-C stops it.",
            version = env!("CARGO_PKG_VERSION"),
            agents = agents.join(", "),
            all = urls.join(", "),
        )
    } else {
        let line = serde_json::json!({
            "url": url,
            "urls": urls,
            "card": format!("{url}/.well-known/agent-card.json"),
            "store": store,
            "version": env!("CARGO_PKG_VERSION"),
            "pid": std::process::id(),
        });
        writeln!(out, "{line}")
    };
    match written.and_then(|()| out.flush()) {
        // Nobody reads it; the server is there all the same.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot say where the server is"),
    }
}

/// A wildcard address is no place to connect to.
fn reachable(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(v4) if v4.ip().is_unspecified() => SocketAddr::from(([127, 0, 0, 1], v4.port())),
        SocketAddr::V6(v6) if v6.ip().is_unspecified() => SocketAddr::from((std::net::Ipv6Addr::LOCALHOST, v6.port())),
        address => address,
    }
}

fn start_logging(config: &Config) {
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
            builder.with_ansi(std::io::stderr().is_terminal()).with_target(false).finish().with(filter).try_init()
        }
        LogFormat::Json => builder.json().finish().with(filter).try_init(),
    };
}

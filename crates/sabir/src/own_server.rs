//! A server for a command that finds none: it runs in the process of the command, with the configured agents and the store of
//! the configuration, and ends with it.
//!
//! It is a server like that of `serve`, but for where it listens: on a free port of the loopback interface, whatever the
//! configuration says, since only this machine is meant. Other commands find it by its address file. So of several programs that
//! start `sabir mcp` with one store, the first one hosts the agents, and the others attach to it.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail};
use sabir_outbound::Roots;
use sabir_store::SqliteStore;
use tokio::sync::{Notify, oneshot};

use crate::address_file::{ServerAddress, StartedBy};
use crate::admin_client::AdminClient;
use crate::cli::CliOptions;
use crate::config::{Config, LoadedConfig};
use crate::local_server::{self, Load, LocalServer};

/// How long a server that has the store may take to say where it is, or to end.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(50);
/// How long a server with its tasks in memory may take to say that it is there.
const PROBE: Duration = Duration::from_secs(2);

/// What ties a server to the command that it runs in.
pub struct Companion {
    /// Told when the server is ready.
    pub ready: Box<dyn FnOnce(ServerAddress) + Send>,
    /// The server stops when its other end is dropped.
    pub gone: oneshot::Receiver<Infallible>,
}

/// Runs a server until its companion has gone.
pub type Serve = fn(LoadedConfig, CliOptions, Companion) -> anyhow::Result<()>;

/// How servers are found, and started where there is none.
#[derive(Clone)]
pub struct Finder {
    pub options: CliOptions,
    pub load: Load,
    pub serve: Serve,
    /// Notified when a server that was started here and was ready has ended.
    pub ended: Arc<Notify>,
}

/// A server that a command can talk to.
pub struct Found {
    pub server: LocalServer,
    pub started_by: StartedBy,
    /// `None`: it runs in another process.
    pub own: Option<OwnServer>,
}

/// A server in this process.
pub struct OwnServer {
    keep: oneshot::Sender<Infallible>,
    thread: JoinHandle<anyhow::Result<()>>,
}

impl OwnServer {
    /// Stops the server in order, as SIGTERM would, and blocks until it has stopped.
    pub fn stop(self) -> anyhow::Result<()> {
        drop(self.keep);
        self.thread.join().unwrap_or_else(|_| Err(anyhow!("the server broke off")))
    }
}

impl Finder {
    /// The server that runs with the store of the configuration, or else a new one in this process. Blocks until it is ready.
    pub fn find_or_start(&self) -> anyhow::Result<Found> {
        self.find(None)
    }

    /// The server that runs after this one, which does not answer any more.
    pub fn find_after(&self, gone: &LocalServer, started_by: StartedBy) -> anyhow::Result<Option<Found>> {
        match started_by {
            StartedBy::Mcp => self.find(Some(&gone.url)).map(Some),
            // Whoever runs it will start it again, and must find the store free.
            StartedBy::Serve => {
                let found = local_server::running(&(self.load)(&self.options)?.config)?;
                let found = found.filter(|(server, _)| server.url != gone.url);
                Ok(found.map(|(server, started_by)| Found { server, started_by, own: None }))
            }
        }
    }

    fn find(&self, gone: Option<&str>) -> anyhow::Result<Found> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let loaded = (self.load)(&self.options)?;
            let Some(file) = loaded.config.store.local_file() else { return self.find_with_memory(loaded) };
            if let Some((server, started_by)) = local_server::running(&loaded.config)?
                && gone != Some(&server.url)
            {
                return Ok(Found { server, started_by, own: None });
            }
            if !SqliteStore::is_open_elsewhere(&file) {
                match self.start(loaded) {
                    // Another process was quicker.
                    Err(_) if SqliteStore::is_open_elsewhere(&file) => {}
                    started => return started,
                }
            }
            if Instant::now() > deadline {
                bail!(
                    "{} is in use by another Sabir, which does not say where it listens; stop it, or name a server with --url",
                    file.display()
                );
            }
            thread::sleep(PAUSE);
        }
    }

    /// Nothing on the disk says where a server with its tasks in memory is, so it is where the configuration says.
    fn find_with_memory(&self, loaded: LoadedConfig) -> anyhow::Result<Found> {
        let configured = local_server::configured_url(&loaded.config.server);
        let Ok(url) = configured else { return self.start(loaded) };
        let server = LocalServer { url, roots: Roots::default() };
        let client = AdminClient::of(server.clone(), None)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        match runtime.block_on(client.get("/healthz", PROBE)) {
            Ok((200, _)) => Ok(Found { server, started_by: StartedBy::Serve, own: None }),
            Ok(_) | Err(_) => self.start(loaded),
        }
    }

    fn start(&self, mut loaded: LoadedConfig) -> anyhow::Result<Found> {
        for_this_machine(&mut loaded.config)?;
        let (tell, told) = oneshot::channel();
        let (keep, gone) = oneshot::channel();
        let (serve, options, ended) = (self.serve, self.options.clone(), self.ended.clone());
        let was_ready = Arc::new(AtomicBool::new(false));
        let is_ready = was_ready.clone();
        let ready = Box::new(move |address| {
            is_ready.store(true, Ordering::Release);
            // Whoever started it waits for this.
            let _ = tell.send(address);
        });
        let thread = thread::Builder::new().name("server".to_owned()).spawn(move || {
            let served = serve(loaded, options, Companion { ready, gone });
            // One that could not start is no end: another process may have been quicker.
            if was_ready.load(Ordering::Acquire) {
                ended.notify_one();
            }
            served
        })?;
        let own = OwnServer { keep, thread };
        match told.blocking_recv() {
            Ok(ServerAddress { url, started_by, .. }) => {
                Ok(Found { server: LocalServer { url, roots: Roots::default() }, started_by, own: Some(own) })
            }
            Err(_) => match own.stop() {
                Ok(()) => Err(anyhow!("the server was stopped before it was ready")),
                Err(error) => Err(error),
            },
        }
    }
}

/// What the configuration says of who else may call does not count.
fn for_this_machine(config: &mut Config) -> anyhow::Result<()> {
    if !config.mcp.enabled {
        bail!("MCP is switched off (mcp.enabled); switch it on, or name a server with --url");
    }
    // Without TLS nobody could show one, so all would be let in.
    if config.server.tls_client_ca.is_some() {
        bail!(
            "callers of this server show certificates (server.tls_client_ca), which `sabir mcp` has none of; start it with \
             `sabir serve`, and name a server with --url that takes tokens"
        );
    }
    let server = &mut config.server;
    server.listen = vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 0))];
    (server.tls_cert, server.tls_key, server.dev_tls) = (None, None, false);
    (server.public_url, server.public_grpc, server.allow_open) = (None, None, false);
    server.trusted_proxies.clear();
    config.metrics.listen.clear();
    Ok(())
}

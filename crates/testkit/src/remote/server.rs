//! The server behind a `RemoteAgent`: its listener, its connections, its death and its return.
//!
//! A server that dies closes its listener and resets its connections. Its port is held meanwhile by a socket that is bound and
//! does not listen, so that nobody else gets it and clients are refused.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};

use super::connection::Connection;
use super::exchange;
use super::faults::{Faults, TasksAfterDeath};
use super::planted::PlantedFault;
use super::protocol::{RemoteBinding, RemoteProtocol};
use super::requests::Requests;
use super::tasks::RemoteTasks;

/// What does not change while the server runs.
pub(super) struct Settings {
    /// Not empty.
    pub protocols: Vec<RemoteProtocol>,
    /// The path below which everything is: empty, or with a leading slash and no final one.
    pub mount: String,
    pub tenant: Option<String>,
    pub bearer: Option<String>,
    pub offers_push: bool,
    /// A message with a known id is that message again.
    pub deduplicates: bool,
    /// A request with a known `Idempotency-Key` is that request again, and the card says so.
    pub knows_keys: bool,
    pub planted: Option<PlantedFault>,
}

impl Settings {
    pub(super) fn first_protocol(&self) -> RemoteProtocol {
        self.protocols[0]
    }

    /// The first protocol is at the mount itself, each other one at a path of its own.
    pub(super) fn interface_path(&self, index: usize, protocol: RemoteProtocol) -> String {
        let binding = match protocol.binding() {
            RemoteBinding::JsonRpc => "jsonrpc",
            RemoteBinding::HttpJson => "rest",
        };
        if index == 0 { String::new() } else { format!("/{}/{binding}", protocol.version()) }
    }
}

pub(super) struct Server {
    pub settings: Settings,
    pub address: SocketAddr,
    pub tasks: RemoteTasks,
    pub requests: Requests,
    /// Nobody ever answers here.
    pub dead_address: SocketAddr,
    /// The tasks that requests with an `Idempotency-Key` have made.
    tasks_of_keys: Mutex<HashMap<String, String>>,
    faults: Mutex<Faults>,
    listening: Mutex<Option<Listening>>,
    connections: Mutex<Vec<Weak<Connection>>>,
    accepted: AtomicUsize,
    is_ended: AtomicBool,
    /// Hold the port of this server and that of nobody.
    _reserved: [Socket; 2],
}

/// How long the threads of connections may take to end.
const CLOSING: Duration = Duration::from_secs(2);

struct Listening {
    is_stopped: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Server {
    pub(super) fn start(settings: Settings, tasks: RemoteTasks, port: u16) -> io::Result<Arc<Self>> {
        let (own, nobody) = (reserve(port)?, reserve(0)?);
        let server = Arc::new(Self {
            settings,
            address: address_of(&own)?,
            dead_address: address_of(&nobody)?,
            tasks,
            requests: Requests::default(),
            tasks_of_keys: Mutex::default(),
            faults: Mutex::default(),
            listening: Mutex::default(),
            connections: Mutex::default(),
            accepted: AtomicUsize::new(0),
            is_ended: AtomicBool::new(false),
            _reserved: [own, nobody],
        });
        server.listen()?;
        Ok(server)
    }

    pub(super) fn faults(&self) -> Faults {
        lock(&self.faults).clone()
    }

    pub(super) fn change_faults<T>(&self, change: impl FnOnce(&mut Faults) -> T) -> T {
        change(&mut lock(&self.faults))
    }

    pub(super) fn task_of_key(&self, key: &str) -> Option<String> {
        lock(&self.tasks_of_keys).get(key).cloned()
    }

    pub(super) fn note_key(&self, key: String, task: String) {
        lock(&self.tasks_of_keys).insert(key, task);
    }

    /// The URL of an interface, as the card gives it.
    pub(super) fn interface_url(&self, index: usize, protocol: RemoteProtocol) -> String {
        let path = format!("{}{}", self.settings.mount, self.settings.interface_path(index, protocol));
        // The root of a URL is a slash, but HTTP+JSON adds its own paths.
        let root = if path.is_empty() && protocol.binding() == RemoteBinding::JsonRpc { "/" } else { "" };
        format!("http://{}{path}{root}", self.address)
    }

    pub(super) fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }

    pub(super) fn open_connections(&self) -> usize {
        lock(&self.connections).iter().filter(|connection| connection.strong_count() > 0).count()
    }

    pub(super) fn is_listening(&self) -> bool {
        lock(&self.listening).is_some()
    }

    /// Listens, if it does not already.
    pub(super) fn listen(self: &Arc<Self>) -> io::Result<()> {
        let mut listening = lock(&self.listening);
        if listening.is_some() || self.is_ended.load(Ordering::SeqCst) {
            return Ok(());
        }
        // The standard library sets SO_REUSEADDR, so that the socket which holds the port is no obstacle.
        let listener = TcpListener::bind(self.address)?;
        let is_stopped = Arc::new(AtomicBool::new(false));
        let (server, stopped) = (Arc::downgrade(self), is_stopped.clone());
        let thread = thread::spawn(move || accept(&server, &listener, &stopped));
        *listening = Some(Listening { is_stopped, thread });
        Ok(())
    }

    /// Closes the listener and resets all connections; comes back by itself if a time is given.
    pub(super) fn die(self: &Arc<Self>, tasks: TasksAfterDeath, back_after: Option<Duration>) {
        self.stop();
        if tasks == TasksAfterDeath::Lost {
            self.tasks.lose_all();
        }
        if let Some(time) = back_after {
            let server = Arc::downgrade(self);
            let end = Instant::now() + time;
            thread::spawn(move || come_back(&server, end));
        }
    }

    /// Waits until the threads of all connections have let go of their sockets, so that peers know.
    pub(super) fn wait_until_closed(&self) {
        let end = Instant::now() + CLOSING;
        while self.open_connections() > 0 && Instant::now() < end {
            thread::yield_now();
        }
    }

    /// Dies for good.
    pub(super) fn end(&self) {
        self.is_ended.store(true, Ordering::SeqCst);
        self.stop();
    }

    fn stop(&self) {
        if let Some(listening) = lock(&self.listening).take() {
            listening.is_stopped.store(true, Ordering::SeqCst);
            while !listening.thread.is_finished() {
                // Wakes the thread. A connection that comes while the listener closes may hang.
                let _ = TcpStream::connect_timeout(&self.address, Duration::from_millis(5));
                thread::yield_now();
            }
            let _ = listening.thread.join();
        }
        for connection in lock(&self.connections).iter().filter_map(Weak::upgrade) {
            connection.abort();
        }
        self.tasks.wake();
    }

    fn admit(self: &Arc<Self>, socket: TcpStream) {
        let number = self.accepted.fetch_add(1, Ordering::SeqCst) + 1;
        let Ok(connection) = Connection::new(socket, number).map(Arc::new) else {
            return;
        };
        {
            let mut connections = lock(&self.connections);
            connections.retain(|known| known.strong_count() > 0);
            connections.push(Arc::downgrade(&connection));
        }
        let server = self.clone();
        thread::spawn(move || exchange::serve(&server, &connection));
    }
}

fn accept(server: &Weak<Server>, listener: &TcpListener, is_stopped: &AtomicBool) {
    for socket in listener.incoming() {
        if is_stopped.load(Ordering::SeqCst) {
            return;
        }
        let Some(server) = server.upgrade() else {
            return;
        };
        if let Ok(socket) = socket {
            server.admit(socket);
        }
    }
}

fn come_back(server: &Weak<Server>, end: Instant) {
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let Some(server) = server.upgrade() else {
            return;
        };
        if left.is_zero() {
            let _ = server.listen();
            return;
        }
        drop(server);
        thread::sleep(left.min(Duration::from_millis(20)));
    }
}

/// Holds a port without listening on it.
fn reserve(port: u16) -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)).into())?;
    Ok(socket)
}

fn address_of(socket: &Socket) -> io::Result<SocketAddr> {
    socket.local_addr()?.as_socket().ok_or_else(|| io::ErrorKind::Unsupported.into())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no thread panics while it holds this")
}

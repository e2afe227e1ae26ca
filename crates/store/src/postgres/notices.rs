//! Hints between nodes, with LISTEN and NOTIFY.
//!
//! A commit that notifies takes a lock of the whole server, so no append does it. Changed tasks gather in memory and go out on a
//! connection of their own: at once after a quiet moment, else every 10 ms, as one text such as `7f3a;l;f7;t9,12,13`:
//!
//! | part  | meaning                                                                    |
//! |-------|----------------------------------------------------------------------------|
//! | first | the sender, which ignores its own                                           |
//! | t     | the logs, the inboxes or the owners of these tasks may have changed         |
//! | f     | calls were forwarded to tasks of these nodes; 0: some call was answered     |
//! | l     | there may be something to claim                                            |
//! | a     | everything may have changed                                                |
//! | h     | a node has begun to listen                                                 |
//!
//! Behind a pooler in transaction mode nothing arrives. A test at the start finds out; a slow database may need longer for it than a
//! start should take, so the test goes on in the background, and the node changes over when its notice arrives.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_postgres::{AsyncMessage, Client, Error};

use super::UNBROKEN;
use super::failure::describe;
use super::link::{Dialer, Link, timeout_error};
use crate::{Hints, TaskNo};

/// Notices are at least so far apart.
const GAP: Duration = Duration::from_millis(10);

/// Postgres accepts less than 8,000 bytes.
const MAX_PAYLOAD: usize = 7_900;

/// If more tasks have changed, they are not named any more.
const MAX_TASKS: usize = 20_000;

/// How long the start waits for the notice of this node.
const TEST: Duration = Duration::from_secs(2);

/// How long the notice is waited for in the background before it is sent again.
const LATE_TEST: Duration = Duration::from_secs(60);

const LAST_PAUSE: Duration = Duration::from_secs(2);

/// How often the listening connection is tried: where nothing is told, a lost one looks like a quiet one.
const TRY_EVERY: Duration = Duration::from_secs(10);
const TRY_LIMIT: Duration = Duration::from_secs(5);

pub(super) struct Notices {
    /// Stands for this process.
    sender: String,
    arrived: Mutex<Hints>,
    has_arrived: Notify,
    outgoing: Mutex<Outgoing>,
    has_outgoing: Notify,
    /// Notices arrive now.
    listens: AtomicBool,
    /// Other nodes hear them.
    has_listeners: AtomicBool,
}

#[derive(Default)]
struct Outgoing {
    tasks: BTreeSet<u64>,
    nodes: BTreeSet<i64>,
    left: bool,
    all: bool,
    hello: bool,
}

impl Notices {
    pub fn new() -> Self {
        Self {
            sender: format!("{:x}", RandomState::new().hash_one(0)),
            arrived: Mutex::default(),
            has_arrived: Notify::new(),
            outgoing: Mutex::default(),
            has_outgoing: Notify::new(),
            listens: AtomicBool::new(false),
            has_listeners: AtomicBool::new(true),
        }
    }

    pub fn listens(&self) -> bool {
        self.listens.load(Ordering::Relaxed)
    }

    pub fn set_listeners(&self, has_listeners: bool) {
        self.has_listeners.store(has_listeners, Ordering::Relaxed);
    }

    /// Waits until something has arrived, and takes it.
    pub async fn next(&self) -> Hints {
        loop {
            let arrived = self.has_arrived.notified();
            let hints = std::mem::take(&mut *self.arrived());
            if hints != Hints::default() {
                return hints;
            }
            arrived.await;
        }
    }

    /// Tells other nodes that tasks have changed.
    pub fn tell_tasks(&self, tasks: impl IntoIterator<Item = TaskNo>) {
        self.tell(|outgoing| outgoing.tasks.extend(tasks.into_iter().map(|task| task.0)));
    }

    /// Tells a node that a call was forwarded to one of its tasks.
    pub fn tell_forwarded(&self, node: i64, own: i64) {
        if node == own {
            self.hint(|hints| hints.forwarded = true);
        } else {
            self.tell(|outgoing| outgoing.nodes.extend([node]));
        }
    }

    /// Tells other nodes that a forwarded call was answered.
    pub fn tell_answered(&self) {
        self.tell(|outgoing| outgoing.nodes.extend([0]));
    }

    /// Tells all nodes, this one too, that there may be something to claim.
    pub fn tell_left(&self) {
        self.hint(|hints| hints.left = true);
        self.tell(|outgoing| outgoing.left = true);
    }

    pub fn tell_hello(&self) {
        self.set_listeners(true);
        self.tell(|outgoing| outgoing.hello = true);
    }

    fn tell(&self, change: impl FnOnce(&mut Outgoing)) {
        if self.has_listeners.load(Ordering::Relaxed) {
            change(&mut self.outgoing());
            self.has_outgoing.notify_one();
        }
    }

    fn hint(&self, change: impl FnOnce(&mut Hints)) {
        change(&mut self.arrived());
        self.has_arrived.notify_waiters();
    }

    fn arrived(&self) -> MutexGuard<'_, Hints> {
        self.arrived.lock().expect(UNBROKEN)
    }

    fn outgoing(&self) -> MutexGuard<'_, Outgoing> {
        self.outgoing.lock().expect(UNBROKEN)
    }

    /// Takes in the text of another node, for the node with this number.
    fn take(&self, payload: &str, own: i64) {
        let mut parts = payload.split(';');
        if parts.next() == Some(self.sender.as_str()) {
            return;
        }
        self.hint(|hints| {
            for part in parts {
                let (kind, rest) = part.split_at_checked(1).unwrap_or((part, ""));
                let mut numbers = rest.split(',').filter_map(|number| number.parse::<u64>().ok());
                match kind {
                    "t" if hints.tasks.len() < MAX_TASKS => hints.tasks.extend(numbers.map(TaskNo)),
                    "f" => hints.forwarded |= numbers.any(|node| node == 0 || Ok(node) == u64::try_from(own)),
                    "l" => hints.left = true,
                    "h" => self.set_listeners(true),
                    // What a newer version tells is not understood, so it may be anything.
                    _ => hints.all = true,
                }
            }
        });
    }

    /// Sends what gathers, until it is stopped.
    pub async fn send(&self, dialer: &Arc<Dialer>) {
        let mut link: Option<Link> = None;
        loop {
            self.has_outgoing.notified().await;
            let outgoing = std::mem::take(&mut *self.outgoing());
            let payloads = outgoing.payloads(&self.sender);
            if payloads.is_empty() {
                continue;
            }
            if let Err(error) = notify(&mut link, dialer, &payloads).await {
                tracing::debug!(reason = describe(&error), "other nodes cannot be notified");
                link = None;
                // Which tasks these were is forgotten: they may be many when the database is back.
                self.tell(|outgoing| outgoing.all = true);
                sleep(LAST_PAUSE / 4).await;
            }
            sleep(GAP).await;
        }
    }

    /// Begins to listen, and tells the dialer whether there is a pooler. Returns whether notices arrive, and a task that goes on
    /// listening, or testing.
    pub async fn listen(
        self: &Arc<Self>,
        dialer: &Arc<Dialer>,
        own: OwnNumber,
    ) -> Result<(bool, JoinHandle<()>), Error> {
        let mut listener = Listener::begin_test(self, dialer, &own).await?;
        let listens = listener.has_own_notice(TEST).await;
        dialer.set_pooled(!listens);
        self.listens.store(listens, Ordering::Relaxed);
        let (notices, dialer) = (self.clone(), dialer.clone());
        let listening = tokio::spawn(async move {
            if !listens {
                listener = Listener::test_until_notice(listener, &notices, &dialer, &own).await;
                dialer.set_pooled(false);
                notices.listens.store(true, Ordering::Relaxed);
                notices.hint(|hints| hints.all = true);
                notices.tell_hello();
                tracing::info!("LISTEN works now: changes of other nodes arrive without a look for them");
            }
            loop {
                listener.ended().await;
                notices.listens.store(false, Ordering::Relaxed);
                listener = Listener::reopen(&notices, &dialer, &own).await;
                notices.listens.store(true, Ordering::Relaxed);
                notices.hint(|hints| hints.all = true);
            }
        });
        Ok((listens, listening))
    }
}

/// Reads the number of this node, which may change.
pub(super) type OwnNumber = Arc<dyn Fn() -> i64 + Send + Sync>;

/// A connection that listens.
struct Listener {
    /// Ends with the connection.
    connection: AbortOnDrop,
    /// Keeps the connection open.
    client: Client,
    own_notice: Arc<Notify>,
}

impl Listener {
    async fn open(notices: Arc<Notices>, dialer: &Dialer, own: OwnNumber) -> Result<Self, Error> {
        let (client, mut connection) = dialer.dial_raw().await?;
        let own_notice = Arc::new(Notify::new());
        let told = own_notice.clone();
        let connection = tokio::spawn(async move {
            while let Some(message) = std::future::poll_fn(|context| connection.poll_message(context)).await {
                match message {
                    Ok(AsyncMessage::Notification(notice)) if notice.payload() == notices.sender => told.notify_one(),
                    Ok(AsyncMessage::Notification(notice)) => notices.take(notice.payload(), own()),
                    Ok(_) => {}
                    Err(_) => return,
                }
            }
        });
        let listener = Self { connection: AbortOnDrop(connection), client, own_notice };
        listen(&listener.client).await?;
        Ok(listener)
    }

    /// Listens, and then makes a notice on another connection: a pooler may send a notice to the connection that made it.
    async fn begin_test(notices: &Arc<Notices>, dialer: &Arc<Dialer>, own: &OwnNumber) -> Result<Self, Error> {
        let listener = Self::open(notices.clone(), dialer, own.clone()).await?;
        let link = dialer.dial().await?;
        link.batch(&format!("NOTIFY sabir, '{}'", notices.sender)).await?;
        Ok(listener)
    }

    /// Nothing is sent on the connection meanwhile: with an answer, a pooler might pass on a notice that came for another client.
    async fn has_own_notice(&mut self, limit: Duration) -> bool {
        if self.connection.0.is_finished() {
            return false;
        }
        let first = async {
            tokio::select! {
                () = self.own_notice.notified() => true,
                _ = &mut self.connection => false,
            }
        };
        timeout(limit, first).await.unwrap_or(false)
    }

    /// Tests again and again, on new connections, until the notice of a test arrives.
    async fn test_until_notice(
        mut listener: Self,
        notices: &Arc<Notices>,
        dialer: &Arc<Dialer>,
        own: &OwnNumber,
    ) -> Self {
        while !listener.has_own_notice(LATE_TEST).await {
            listener = loop {
                sleep(LAST_PAUSE).await;
                match Self::begin_test(notices, dialer, own).await {
                    Ok(listener) => break listener,
                    Err(error) => tracing::debug!(reason = describe(&error), "the database cannot be listened to"),
                }
            };
        }
        listener
    }

    /// Waits for the end of the connection, or until it does not answer any more.
    async fn ended(&mut self) {
        loop {
            match timeout(TRY_EVERY, &mut self.connection).await {
                Ok(_) => return,
                Err(_) if listen(&self.client).await.is_err() => return,
                Err(_) => {}
            }
        }
    }

    async fn reopen(notices: &Arc<Notices>, dialer: &Dialer, own: &OwnNumber) -> Self {
        let mut pause = Duration::from_millis(50);
        loop {
            match Self::open(notices.clone(), dialer, own.clone()).await {
                Ok(listener) => return listener,
                Err(error) => tracing::debug!(reason = describe(&error), "the database cannot be listened to"),
            }
            sleep(pause).await;
            pause = (pause * 2).min(LAST_PAUSE);
        }
    }
}

/// To listen again changes nothing.
async fn listen(client: &Client) -> Result<(), Error> {
    timeout(TRY_LIMIT, client.batch_execute("LISTEN sabir")).await.unwrap_or_else(|_| Err(timeout_error()))
}

/// A task that ends when nobody is interested any more.
struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Future for &mut AbortOnDrop {
    type Output = Result<(), tokio::task::JoinError>;

    fn poll(mut self: std::pin::Pin<&mut Self>, context: &mut std::task::Context<'_>) -> std::task::Poll<Self::Output> {
        std::pin::Pin::new(&mut self.0).poll(context)
    }
}

async fn notify(link: &mut Option<Link>, dialer: &Arc<Dialer>, payloads: &[String]) -> Result<(), Error> {
    if link.as_ref().is_none_or(Link::is_closed) {
        *link = Some(dialer.dial().await?);
    }
    let link = link.as_ref().expect("it was just opened");
    link.execute("SELECT pg_notify('sabir', payload) FROM unnest($1::text[]) AS payload", &[&payloads]).await?;
    Ok(())
}

impl Outgoing {
    fn payloads(self, sender: &str) -> Vec<String> {
        let Self { tasks, nodes, left, all, hello } = self;
        let all = all || tasks.len() > MAX_TASKS;
        let tasks = if all { BTreeSet::new() } else { tasks };
        if tasks.is_empty() && nodes.is_empty() && !left && !all && !hello {
            return Vec::new();
        }
        let mut payload = sender.to_owned();
        for (is_told, part) in [(left, ";l"), (all, ";a"), (hello, ";h")] {
            payload.push_str(if is_told { part } else { "" });
        }
        let mut payloads = Vec::new();
        let nodes = nodes.into_iter().map(|node| node as u64).collect::<Vec<_>>();
        for (part, numbers) in [(";f", nodes), (";t", tasks.into_iter().collect())] {
            let mut prefix = part;
            for number in numbers {
                if payload.len() > MAX_PAYLOAD - 24 {
                    payloads.push(std::mem::replace(&mut payload, sender.to_owned()));
                    prefix = part;
                }
                let _ = write!(payload, "{prefix}{number}");
                prefix = ",";
            }
        }
        payloads.push(payload);
        payloads
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(outgoing: Outgoing, own: i64) -> Hints {
        let notices = Notices::new();
        for payload in outgoing.payloads("other") {
            assert!(payload.len() < 8_000, "{}", payload.len());
            notices.take(&payload, own);
        }
        std::mem::take(&mut *notices.arrived())
    }

    #[test]
    fn hints_arrive_as_they_were_told() {
        let told = || Outgoing { tasks: [12, 9].into(), nodes: [7].into(), left: true, ..Outgoing::default() };
        assert_eq!(told().payloads("x"), ["x;l;f7;t9,12"]);
        let tasks = vec![TaskNo(9), TaskNo(12)];
        assert_eq!(taken(told(), 7), Hints { tasks: tasks.clone(), forwarded: true, left: true, all: false });
        assert_eq!(taken(told(), 8), Hints { tasks, forwarded: false, left: true, all: false });
        let answered = Outgoing { nodes: [0].into(), ..Outgoing::default() };
        assert_eq!(taken(answered, 8), Hints { forwarded: true, ..Hints::default() });
        assert_eq!(taken(Outgoing { hello: true, ..Outgoing::default() }, 8), Hints::default());
        assert_eq!(Outgoing::default().payloads("x"), Vec::<String>::new());
    }

    #[test]
    fn many_tasks_need_several_notices() {
        let first = u64::MAX / 2;
        let hints = taken(Outgoing { tasks: (first..first + 2_000).collect(), ..Outgoing::default() }, 1);
        assert_eq!(hints.tasks.len(), 2_000);
        let hints = taken(Outgoing { tasks: (0..30_000).collect(), ..Outgoing::default() }, 1);
        assert_eq!(hints, Hints { all: true, ..Hints::default() });
    }

    #[test]
    fn own_notices_are_ignored() {
        let notices = Notices::new();
        notices.take(&format!("{};t1;l", notices.sender), 1);
        assert_eq!(*notices.arrived(), Hints::default());
    }
}

//! The connections of the server: how many there are, what each one does, and which of them has to go.
//!
//! Descriptors are finite, so connections have a cap. When it is reached, a new connection takes the place of one that
//! does nothing for its client, so that whoever opens connections without asking anything only pushes out their own.
//! Only when all of them are being answered do new ones wait, in the backlog of the system, where they cost nothing and
//! are served as soon as a place is free. One peer may have a part of them only; its further ones are refused.
//!
//! | what the connection does                 | it ends after      | gives way to a new one        |
//! |------------------------------------------|--------------------|-------------------------------|
//! | has not sent a complete request head, or |                    |                               |
//! | has not completed its TLS handshake      | `Timeouts::head`   | first, once it is a second old |
//! | rests between two requests               | `Timeouts::idle`   | second                        |
//! | has just been accepted                   | `Timeouts::head`   | third                         |
//! | sends the body of its request            | see `incoming`     | last                          |
//! | does not read a whole reply              | `Timeouts::reply`  | last                          |
//! | is being answered, or reads a stream     | never              | never                         |

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::peer::{PeerCounts, PeerLimit, RequestInFlight, RequestsInFlight};
use crate::progress::Progress;

/// How long a client may keep the server waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// For the head of a request, from the opening of the connection or from its first byte.
    pub head: Duration,
    /// Between two requests.
    pub idle: Duration,
    /// For a reasonable part of a request's body.
    pub body: Duration,
    /// For any part of a whole reply to be read. Streams have no such limit.
    pub reply: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self { head: seconds(30), idle: seconds(75), body: seconds(30), reply: seconds(60) }
    }
}

impl Timeouts {
    /// How often to look whose time is up.
    fn round(&self) -> Duration {
        let shortest = self.head.min(self.idle).min(self.reply);
        (shortest / 8).clamp(Duration::from_millis(5), Duration::from_secs(1))
    }
}

/// A new connection has this time to begin; older ones that have not begun are the first to go.
const NEW: Duration = Duration::from_secs(1);
/// How often to look again for a place when everybody is busy.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// How many connections are open. All clones are the same number.
#[derive(Debug, Clone, Default)]
pub(crate) struct OpenConnections(Arc<AtomicUsize>);

impl OpenConnections {
    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

pub(crate) struct Connections {
    most: usize,
    open: OpenConnections,
    per_peer: PeerLimit,
    in_flight: Arc<RequestsInFlight>,
    pub(crate) timeouts: Timeouts,
    table: Mutex<ConnectionTable>,
    /// A connection has ended.
    ended: Notify,
}

#[derive(Default)]
struct ConnectionTable {
    open: HashMap<u64, Arc<Connection>>,
    /// Of peers that are limited.
    of_peers: PeerCounts,
    count: u64,
    is_closing: bool,
}

/// One connection, for as long as it is open.
pub(crate) struct ConnectionSlot {
    connections: Arc<Connections>,
    id: u64,
    /// The address of the other end.
    pub(crate) peer: IpAddr,
    pub(crate) connection: Arc<Connection>,
}

pub(crate) struct Connection {
    state: Mutex<ConnectionState>,
    /// There is an order.
    ordered: Notify,
}

struct ConnectionState {
    protocol: Protocol,
    /// Requests that are not answered to their end.
    exchanges: usize,
    /// Of those, requests whose body is still coming.
    receiving: usize,
    /// What the latest answer is.
    answer: Answering,
    has_asked: bool,
    /// When it was opened, or when its latest exchange began or ended.
    since: Instant,
    /// When the first byte of a request came whose head is not complete.
    head_since: Option<Instant>,
    /// When the client stopped taking what is written to it.
    blocked_since: Option<Instant>,
    order: Option<End>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// Also what is not known yet.
    Http1,
    Http2,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answering {
    Whole,
    Stream,
}

/// How a connection has to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum End {
    /// When its exchanges are over.
    Gracefully,
    Now,
}

/// In which order connections give way to a new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum GivesWay {
    Silent,
    Idle,
    New,
    Unfinished,
}

impl Connections {
    pub(crate) fn new(most: usize, per_peer: PeerLimit, timeouts: Timeouts, open: OpenConnections) -> Arc<Self> {
        let in_flight = Arc::default();
        Arc::new(Self {
            most: most.max(1),
            open,
            per_peer,
            in_flight,
            timeouts,
            table: Mutex::default(),
            ended: Notify::new(),
        })
    }

    /// A slot for a new connection, as soon as one is free. `None`: this peer has as many as it may have.
    pub(crate) async fn admit(self: &Arc<Self>, peer: IpAddr) -> Option<ConnectionSlot> {
        if !self.per_peer.exempts(peer) && !lock(&self.table).of_peers.try_enter(peer, self.per_peer.most) {
            return None;
        }
        loop {
            let mut ended = std::pin::pin!(self.ended.notified());
            ended.as_mut().enable();
            if let Some(slot) = self.try_admit(peer) {
                return Some(slot);
            }
            self.make_room();
            let _ = tokio::time::timeout(LOOK_AGAIN, ended).await;
        }
    }

    fn try_admit(self: &Arc<Self>, peer: IpAddr) -> Option<ConnectionSlot> {
        let mut table = lock(&self.table);
        if table.open.len() >= self.most {
            return None;
        }
        table.count += 1;
        let id = table.count;
        let connection = Arc::new(Connection::new(Instant::now()));
        if table.is_closing {
            connection.end(End::Gracefully);
        }
        table.open.insert(id, connection.clone());
        self.open.0.fetch_add(1, Ordering::Relaxed);
        Some(ConnectionSlot { connections: self.clone(), id, peer, connection })
    }

    /// Ends the connection that is missed least.
    pub(crate) fn make_room(&self) {
        let now = Instant::now();
        let table = lock(&self.table);
        let candidates = table.open.values().filter_map(|connection| {
            let state = lock(&connection.state);
            state.gives_way(now).map(|rank| ((rank, state.since), connection))
        });
        if let Some((_, connection)) = candidates.min_by_key(|(rank, _)| *rank) {
            connection.end(End::Now);
        }
    }

    /// Ends every connection whose time is up, in rounds without an end, and calls `each_round` in each.
    pub(crate) async fn end_overdue(&self, each_round: impl Fn()) {
        let mut round = tokio::time::interval(self.timeouts.round());
        loop {
            round.tick().await;
            each_round();
            let now = Instant::now();
            for connection in lock(&self.table).open.values() {
                let end = lock(&connection.state).overdue(&self.timeouts, now);
                if let Some(end) = end {
                    connection.end(end);
                }
            }
        }
    }

    /// Lets all of them end, and those that come later.
    pub(crate) fn close(&self) {
        let mut table = lock(&self.table);
        table.is_closing = true;
        for connection in table.open.values() {
            connection.end(End::Gracefully);
        }
    }

    pub(crate) async fn until_none(&self) {
        loop {
            let mut ended = std::pin::pin!(self.ended.notified());
            ended.as_mut().enable();
            if lock(&self.table).open.is_empty() {
                return;
            }
            ended.await;
        }
    }
}

impl ConnectionSlot {
    /// A request that a proxy passes on for this peer. `None`: the peer has as many as it may have connections.
    pub(crate) fn begin_forwarded(&self, peer: IpAddr) -> Option<RequestInFlight> {
        self.connections.in_flight.try_enter(peer, self.connections.per_peer.most)
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut table = lock(&self.connections.table);
        table.open.remove(&self.id);
        self.connections.open.0.fetch_sub(1, Ordering::Relaxed);
        if !self.connections.per_peer.exempts(self.peer) {
            table.of_peers.leave(self.peer);
        }
        drop(table);
        self.connections.ended.notify_waiters();
    }
}

impl Connection {
    fn new(now: Instant) -> Self {
        let state = ConnectionState {
            protocol: Protocol::Http1,
            exchanges: 0,
            receiving: 0,
            answer: Answering::Whole,
            has_asked: false,
            since: now,
            head_since: None,
            blocked_since: None,
            order: None,
        };
        Self { state: Mutex::new(state), ordered: Notify::new() }
    }

    pub(crate) fn speaks(&self, protocol: Protocol) {
        lock(&self.state).protocol = protocol;
    }

    /// The head of a request is complete.
    pub(crate) fn begin(self: &Arc<Self>) -> Exchange {
        let mut state = lock(&self.state);
        state.exchanges += 1;
        state.has_asked = true;
        state.since = Instant::now();
        state.head_since = None;
        drop(state);
        Exchange { connection: self.clone(), progress: Progress::of_this_stream(), _in_flight: None }
    }

    /// Bytes have come.
    pub(crate) fn has_read(&self) {
        let mut state = lock(&self.state);
        if state.protocol == Protocol::Http1 && state.exchanges == 0 && state.head_since.is_none() {
            state.head_since = Some(Instant::now());
        }
    }

    /// The client takes nothing of what is written.
    pub(crate) fn is_blocked(&self) {
        lock(&self.state).blocked_since = Some(Instant::now());
    }

    /// The client takes something again.
    pub(crate) fn has_written(&self) {
        lock(&self.state).blocked_since = None;
    }

    pub(crate) fn end(&self, how: End) {
        let mut state = lock(&self.state);
        if state.order < Some(how) {
            state.order = Some(how);
            self.ordered.notify_one();
        }
    }

    /// Waits until it has to end like this, or sooner.
    pub(crate) async fn has_to_end(&self, at_least: End) -> End {
        loop {
            match lock(&self.state).order {
                Some(order) if order >= at_least => return order,
                _ => {}
            }
            self.ordered.notified().await;
        }
    }
}

impl ConnectionState {
    fn overdue(&self, timeouts: &Timeouts, now: Instant) -> Option<End> {
        let is_over = |since: Instant, limit: Duration| now.saturating_duration_since(since) >= limit;
        if let Some(since) = self.blocked_since {
            // HTTP/2 has several answers on one connection; each has its own `Progress`.
            let is_stalled = self.protocol == Protocol::Http1 && self.answer == Answering::Whole;
            return (is_stalled && is_over(since, timeouts.reply)).then_some(End::Now);
        }
        if self.exchanges > 0 {
            return None;
        }
        match (self.protocol, self.head_since) {
            (Protocol::Http1, Some(since)) => is_over(since, timeouts.head).then_some(End::Now),
            (_, _) if !self.has_asked => is_over(self.since, timeouts.head).then_some(End::Now),
            (_, _) => is_over(self.since, timeouts.idle).then_some(End::Gracefully),
        }
    }

    fn gives_way(&self, now: Instant) -> Option<GivesWay> {
        if self.order == Some(End::Now) {
            return None;
        }
        if self.exchanges > 0 || self.blocked_since.is_some() {
            let is_unfinished =
                if self.exchanges > 0 { self.receiving == self.exchanges } else { self.answer == Answering::Whole };
            return is_unfinished.then_some(GivesWay::Unfinished);
        }
        let is_new = now.saturating_duration_since(self.since) < NEW;
        match (self.has_asked, self.head_since) {
            (true, None) => Some(GivesWay::Idle),
            _ if is_new => Some(GivesWay::New),
            _ => Some(GivesWay::Silent),
        }
    }
}

/// A request on a connection, until its answer is written or given up.
pub(crate) struct Exchange {
    connection: Arc<Connection>,
    progress: Option<Arc<Progress>>,
    /// In a box, since most have none.
    _in_flight: Option<Box<RequestInFlight>>,
}

impl Exchange {
    /// Counts as this until it ends.
    pub(crate) fn counted(self, in_flight: Option<Box<RequestInFlight>>) -> Self {
        // `Exchange` has a `Drop`, so its fields cannot be moved to another.
        let mut this = self;
        this._in_flight = in_flight;
        this
    }

    /// The body of the request is awaited until the returned value is dropped.
    pub(crate) fn receive(&self) -> Receiving<'_> {
        lock(&self.connection.state).receiving += 1;
        Receiving(&self.connection)
    }

    pub(crate) fn answer_with(&self, answer: Answering) {
        lock(&self.connection.state).answer = answer;
        if let (Some(progress), Answering::Whole) = (&self.progress, answer) {
            progress.begin();
        }
    }

    /// Something of a whole reply has been asked for, so its reader reads.
    pub(crate) fn progress(&self) {
        if let Some(progress) = &self.progress {
            progress.made();
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let mut state = lock(&self.connection.state);
        state.exchanges -= 1;
        state.since = Instant::now();
    }
}

pub(crate) struct Receiving<'a>(&'a Connection);

impl Drop for Receiving<'_> {
    fn drop(&mut self) {
        lock(&self.0.state).receiving -= 1;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A connection that has lived through these, one second apart, and when it was opened.
    fn lived(moments: &[&str]) -> (ConnectionState, Instant) {
        let start = Instant::now();
        let mut state = Connection::new(start).state.into_inner().unwrap();
        for (seconds, moment) in (1..).zip(moments) {
            let now = start + Duration::from_secs(seconds);
            match *moment {
                "byte" => state.head_since = Some(now),
                "head" => {
                    (state.exchanges, state.has_asked) = (state.exchanges + 1, true);
                    (state.since, state.head_since) = (now, None);
                }
                "awaits body" => state.receiving += 1,
                "has body" => state.receiving -= 1,
                "streams" => state.answer = Answering::Stream,
                "answered" => (state.exchanges, state.since) = (state.exchanges - 1, now),
                "blocked" => state.blocked_since = Some(now),
                "reads" => state.blocked_since = None,
                "http2" => state.protocol = Protocol::Http2,
                other => panic!("{other}"),
            }
        }
        (state, start)
    }

    #[test]
    fn each_thing_has_a_time_of_its_own() {
        let timeouts = Timeouts::default();
        for (moments, expected) in [
            // Seconds after the opening at which it ends.
            (&[][..], Some((30, End::Now))),
            (&["byte"], Some((31, End::Now))),
            (&["head"], None),
            (&["head", "awaits body"], None),
            (&["head", "answered"], Some((77, End::Gracefully))),
            (&["head", "answered", "byte"], Some((33, End::Now))),
            (&["head", "answered", "head"], None),
            (&["head", "blocked"], Some((62, End::Now))),
            (&["head", "answered", "blocked"], Some((63, End::Now))),
            (&["head", "blocked", "reads"], None),
            (&["head", "streams", "blocked"], None),
            (&["head", "streams", "answered", "blocked"], None),
            (&["head", "streams", "answered"], Some((78, End::Gracefully))),
            (&["http2"], Some((30, End::Now))),
            (&["http2", "head", "answered"], Some((78, End::Gracefully))),
            (&["http2", "head", "head", "answered"], None),
            (&["http2", "head", "blocked"], None),
        ] {
            let (state, start) = lived(moments);
            let ends = (1..1000).find_map(|seconds| {
                let end = state.overdue(&timeouts, start + Duration::from_secs(seconds))?;
                Some((seconds, end))
            });
            assert_eq!(ends, expected, "{moments:?}");
        }
    }

    #[test]
    fn who_gives_way_to_a_new_connection() {
        let all = [
            (&[][..], Some(GivesWay::Silent)),
            (&["byte"], Some(GivesWay::Silent)),
            (&["head", "answered", "byte"], Some(GivesWay::Silent)),
            (&["head", "answered"], Some(GivesWay::Idle)),
            (&["head", "awaits body"], Some(GivesWay::Unfinished)),
            (&["head", "blocked", "answered"], Some(GivesWay::Unfinished)),
            (&["head"], None),
            (&["head", "awaits body", "has body"], None),
            (&["http2", "head", "head", "awaits body"], None),
            (&["head", "streams", "blocked"], None),
            (&["head", "streams", "blocked", "answered"], None),
        ];
        for (moments, expected) in all {
            let (state, start) = lived(moments);
            assert_eq!(state.gives_way(start + Duration::from_secs(20)), expected, "{moments:?}");
        }
        let (state, start) = lived(&[]);
        assert_eq!(state.gives_way(start), Some(GivesWay::New));
        assert!(GivesWay::Silent < GivesWay::Idle && GivesWay::Idle < GivesWay::New);
        assert!(GivesWay::New < GivesWay::Unfinished);
    }
}

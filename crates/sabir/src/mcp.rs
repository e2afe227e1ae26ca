//! `sabir mcp`: MCP on standard input and output, for programs that start their MCP servers themselves. It carries messages to
//! `/mcp` of a server, line by line, and what comes back the other way. Where no server runs with the store, it starts one in this
//! process (`own_server`).
//!
//! Tasks are in the store, so they outlive this program. What a host said in `initialize` comes back from the server as a session id,
//! which goes with every later message, also to another server.

use std::collections::HashMap;
use std::io::{self, BufRead, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use sabir_model::Base64;
use sabir_outbound::{DialError, OpenResponse};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::sync::{Mutex as AsyncMutex, Notify, mpsc, oneshot};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;

use crate::address_file::StartedBy;
use crate::admin_client::AdminClient;
use crate::cli::{CliOptions, McpOptions};
use crate::local_server::{Load, LocalServer};
use crate::own_server::{Finder, Found, OwnServer, Serve};
use crate::terminal_text::visible;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const TRANSPORT: HeaderName = HeaderName::from_static("sabir-mcp-transport");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// The server says something every 15 s while a call waits.
const PATIENCE: Duration = Duration::from_secs(120);
/// For answers when the host has closed its end.
const LAST_ANSWERS: Duration = Duration::from_secs(2);
/// The longest id that an answer repeats.
const LONGEST_ID: usize = 1024;
/// The longest line of a host, and the longest message for it: neither side may take all memory.
const LONGEST_LINE: u64 = 64 << 20;
/// Lines that wait for a host that reads slowly. Whoever has more to tell waits.
const MOST_WAITING: usize = 16;

/// Carries messages until the host closes the standard input. A server that was started for that stops then.
pub fn run(options: &McpOptions, load: Load, serve: Serve) -> anyhow::Result<()> {
    let server = &options.server;
    let ended = Arc::new(Notify::new());
    let (client, place, own) = match &server.url {
        Some(_) => (AdminClient::new(server, load)?, None, None),
        None => {
            let options = CliOptions { config: server.config.clone(), ..CliOptions::default() };
            let finder = Finder { options, load, serve, ended: ended.clone() };
            let Found { server: local, started_by, own } = finder.find_or_start()?;
            (AdminClient::of(local.clone(), server.token.as_deref())?, Some(Place { finder, local, started_by }), own)
        }
    };
    let connection = Connection { client: Arc::new(client), place, own };
    let (out, written) = lines_to_host();
    let bridge = Arc::new(Bridge {
        out,
        connection: AsyncMutex::new(connection),
        token: server.token.clone(),
        host: Mutex::default(),
        calls: Mutex::default(),
    });
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start threads")?;
    let carried = runtime.block_on(async {
        let carried = bridge.carry(&ended).await;
        let own = bridge.connection.lock().await.own.take();
        drop(bridge);
        // A host that reads nothing more must not keep the store from the next server.
        let _ = timeout(LAST_ANSWERS, written).await;
        (carried, own)
    });
    // Threads may still wait for the standard input and the standard output.
    runtime.shutdown_background();
    let (carried, own) = carried;
    own.map_or(Ok(()), OwnServer::stop).and(carried)
}

struct Bridge {
    /// Lines for the host.
    out: mpsc::Sender<Vec<u8>>,
    connection: AsyncMutex<Connection>,
    token: Option<String>,
    host: Mutex<Host>,
    /// Requests under way, by their ids as they are written.
    calls: Mutex<HashMap<String, AbortHandle>>,
}

/// The server that messages are carried to.
struct Connection {
    client: Arc<AdminClient>,
    /// `None`: it was named by its URL.
    place: Option<Place>,
    /// `None`: it runs in another process.
    own: Option<OwnServer>,
}

/// A server that was found by the store that it runs with, so that the next one can be found, too.
struct Place {
    finder: Finder,
    local: LocalServer,
    started_by: StartedBy,
}

/// What `initialize` of a legacy host has led to.
#[derive(Default, Clone)]
struct Host {
    session: Option<HeaderValue>,
    version: Option<HeaderValue>,
}

/// What has to be known of a message to carry it.
#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: Option<String>,
    params: Option<Params>,
}

impl<'a> Message<'a> {
    /// An id that an answer repeats: a string or a whole number, and not long.
    fn usable_id(&self) -> Option<&'a RawValue> {
        self.id.filter(|id| {
            let digits = id.get().strip_prefix('-').unwrap_or(id.get());
            let is_of_a_type = id.get().starts_with('"') || digits.bytes().all(|byte| byte.is_ascii_digit());
            is_of_a_type && id.get().len() <= LONGEST_ID
        })
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct Params {
    name: Option<String>,
    uri: Option<String>,
    task_id: Option<String>,
    request_id: Option<Box<RawValue>>,
    #[serde(rename = "_meta")]
    meta: Option<Meta>,
}

#[derive(Deserialize)]
struct Meta {
    #[serde(rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InitializeResult {
    protocol_version: String,
}

#[derive(Deserialize)]
struct Initialized {
    result: InitializeResult,
}

#[derive(Serialize)]
struct ErrorResponse<'a> {
    jsonrpc: &'static str,
    id: &'a RawValue,
    error: ErrorObject,
}

#[derive(Serialize)]
struct ErrorObject {
    code: i32,
    message: String,
}

impl Bridge {
    /// Carries messages until the host closes the standard input, or the server in this process has `ended`.
    async fn carry(self: &Arc<Self>, ended: &Notify) -> anyhow::Result<()> {
        let mut under_way = JoinSet::new();
        let mut lines = lines_of_host();
        loop {
            let next = tokio::select! {
                next = lines.recv() => next,
                () = ended.notified() => None,
            };
            let Some(line) = next else { break };
            let line = line.context("cannot read the standard input")?;
            let text = String::from_utf8_lossy(&line).trim().to_owned();
            if text.is_empty() {
                continue;
            }
            let Ok(message) = serde_json::from_str::<Message<'_>>(&text) else {
                // The server says what is wrong with it.
                let bridge = self.clone();
                under_way.spawn(async move { bridge.forward(&text, HeaderMap::new()).await });
                while under_way.try_join_next().is_some() {}
                continue;
            };
            if message.method.as_deref() == Some("notifications/cancelled") {
                self.cancel(message.params.as_ref());
                continue;
            }
            let headers = self.headers(&message);
            let id = message.id.map(|id| id.get().to_owned());
            let is_initialize = message.method.as_deref() == Some("initialize");
            drop(message);
            if is_initialize {
                // What follows needs its session.
                tokio::select! {
                    () = self.forward(&text, headers) => continue,
                    () = ended.notified() => break,
                }
            }
            let bridge = self.clone();
            let called = id.clone();
            // Held until the call is there, so that its end does not come first.
            let mut calls = lock(&self.calls);
            let call = under_way.spawn(async move {
                bridge.forward(&text, headers).await;
                if let Some(id) = called {
                    lock(&bridge.calls).remove(&id);
                }
            });
            if let Some(id) = id {
                calls.insert(id, call);
            }
            drop(calls);
            while under_way.try_join_next().is_some() {}
        }
        // A script closes its end after the last message. A host that has gone is not waited for.
        let _ = timeout(LAST_ANSWERS, async { while under_way.join_next().await.is_some() {} }).await;
        Ok(())
    }

    /// Ends the wait for a call. The task goes on.
    fn cancel(&self, params: Option<&Params>) {
        let id = params.and_then(|params| params.request_id.as_ref());
        if let Some(call) = id.and_then(|id| lock(&self.calls).remove(id.get())) {
            call.abort();
        }
    }

    fn headers(&self, message: &Message<'_>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let params = message.params.as_ref();
        let modern = params.and_then(|params| params.meta.as_ref()?.version.as_deref());
        match (modern, message.method.as_deref()) {
            (Some(version), Some(method)) => {
                let name = params
                    .and_then(|params| params.name.as_deref().or(params.uri.as_deref()).or(params.task_id.as_deref()));
                headers.extend(header_value(version).map(|value| (VERSION, value)));
                headers.extend(header_value(method).map(|value| (HeaderName::from_static("mcp-method"), value)));
                headers.extend(name.and_then(header_value).map(|value| (HeaderName::from_static("mcp-name"), value)));
            }
            _ => {
                let Host { session, version } = lock(&self.host).clone();
                headers.extend(session.map(|value| (SESSION, value)));
                headers.extend(version.map(|value| (VERSION, value)));
            }
        }
        headers
    }

    /// Sends a message to the server, and tells the host what comes back.
    async fn forward(self: &Arc<Self>, text: &str, headers: HeaderMap) {
        if let Err(error) = self.exchange(text, headers).await {
            eprintln!("sabir: {error:#}");
            let id = serde_json::from_str::<Message<'_>>(text).ok().filter(|message| message.method.is_some());
            if let Some(id) = id.and_then(|message| message.usable_id()) {
                let error = ErrorObject { code: -32603, message: format!("{error:#}") };
                let response = ErrorResponse { jsonrpc: "2.0", id, error };
                self.tell(&serde_json::to_vec(&response).expect("texts can be written as JSON")).await;
            }
        }
    }

    /// Posts a message to the server, or to the next one if that has gone.
    async fn post(
        self: &Arc<Self>,
        text: &str,
        headers: HeaderMap,
    ) -> anyhow::Result<(Arc<AdminClient>, OpenResponse)> {
        let mut client = self.connection.lock().await.client.clone();
        let post =
            async |client: &AdminClient| client.post("/mcp", headers.clone(), text.to_owned().into(), PATIENCE).await;
        let mut posted = post(&client).await;
        // Without a connection nothing was sent, so nothing is done twice.
        if let Err(DialError::Connect(_) | DialError::ConnectTimeout) = &posted
            && let Some(next) = self.next_server(&client).await?
        {
            posted = post(&next).await;
            client = next;
        }
        match posted {
            Ok(response) => Ok((client, response)),
            Err(error) => Err(client.unreachable(&error)),
        }
    }

    /// The server after this one, which does not answer any more.
    async fn next_server(self: &Arc<Self>, gone: &Arc<AdminClient>) -> anyhow::Result<Option<Arc<AdminClient>>> {
        let (bridge, gone) = (self.clone(), gone.clone());
        // A call that is taken back ends its wait, and not the search: a server that this process starts must be known here.
        tokio::spawn(async move { bridge.find_next(&gone).await }).await?
    }

    async fn find_next(&self, gone: &Arc<AdminClient>) -> anyhow::Result<Option<Arc<AdminClient>>> {
        let mut connection = self.connection.lock().await;
        let Connection { client: current, place, own } = &mut *connection;
        if !Arc::ptr_eq(current, gone) {
            // Another call has found it.
            return Ok(Some(current.clone()));
        }
        let (Some(Place { finder, local, started_by }), None) = (place, &own) else { return Ok(None) };
        let (searching, left, by) = (finder.clone(), local.clone(), *started_by);
        let found = tokio::task::spawn_blocking(move || searching.find_after(&left, by)).await??;
        let Some(found) = found else { return Ok(None) };
        let client = Arc::new(AdminClient::of(found.server.clone(), self.token.as_deref())?);
        (*local, *started_by) = (found.server, found.started_by);
        (*current, *own) = (client.clone(), found.own);
        Ok(Some(client))
    }

    async fn exchange(self: &Arc<Self>, text: &str, mut headers: HeaderMap) -> anyhow::Result<()> {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        headers.insert(TRANSPORT, HeaderValue::from_static("stdio"));
        let (client, response) = self.post(text, headers).await?;
        let is_stream = response
            .headers
            .get(header::CONTENT_TYPE)
            .is_some_and(|value| value.to_str().is_ok_and(|value| value.starts_with("text/event-stream")));
        if is_stream {
            return self.tell_events(response, text).await;
        }
        let session = response.headers.get(SESSION).cloned();
        let status = response.status;
        let body = response.complete(PATIENCE).await?.body;
        if let Some(session) = session {
            let initialized = serde_json::from_slice::<Initialized>(&body).ok();
            let version = initialized.and_then(|one| header_value(&one.result.protocol_version));
            *lock(&self.host) = Host { session: Some(session), version };
        }
        if body.is_empty() {
            return Ok(());
        }
        let has_id = |text: &[u8]| {
            serde_json::from_slice::<Message<'_>>(text).is_ok_and(|message| message.usable_id().is_some())
        };
        // What is wrong with a message without an id, or with its id, is said without one. Any other refusal is not of this message.
        let is_answer = has_id(&body) || !has_id(text.as_bytes());
        if !is_answer && !status.is_success() {
            let said = String::from_utf8_lossy(&body);
            let said: String = visible(said.trim()).chars().take(500).collect();
            anyhow::bail!("the server at {} refuses ({status}): {said}{}", client.base(), remedy(status.as_u16()));
        }
        self.tell(&body).await;
        Ok(())
    }

    /// One line for the host, after those that came before. A host that reads no more has gone.
    async fn tell(&self, message: &[u8]) {
        let is_of_line = |byte: &u8| !matches!(byte, b'\n' | b'\r');
        let line = message.iter().copied().filter(is_of_line).chain([b'\n']).collect();
        let _ = self.out.send(line).await;
    }

    /// Tells the host each message of a stream as it comes. A request gets an answer, even if the stream ends without one.
    async fn tell_events(&self, mut response: OpenResponse, asked: &str) -> anyhow::Result<()> {
        let read = |text: &[u8]| {
            serde_json::from_slice(text).map(|Message { id, method, .. }| (id.is_some(), method.is_some()))
        };
        let mut is_answered = !matches!(read(asked.as_bytes()), Ok((true, true)));
        let mut pending = Vec::new();
        while let Some(bytes) = response.chunk(PATIENCE).await? {
            // What was looked at has no end in it, but perhaps its first half.
            let mut looked = pending.len().saturating_sub(1);
            pending.extend_from_slice(&bytes);
            while let Some(place) = pending[looked..].windows(2).position(|two| two == b"\n\n") {
                let frame: Vec<u8> = pending.drain(..looked + place + 2).collect();
                looked = 0;
                let data: Vec<&[u8]> =
                    frame.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(b"data: ")).collect();
                if !data.is_empty() {
                    let message = data.join(&b' ');
                    is_answered = is_answered || matches!(read(&message), Ok((_, false)));
                    self.tell(&message).await;
                }
            }
            if pending.len() as u64 > LONGEST_LINE {
                anyhow::bail!("the server sends a message of more than {} MiB; a task goes on", LONGEST_LINE >> 20);
            }
        }
        match is_answered {
            true => Ok(()),
            false => anyhow::bail!("the server ended its answer before it was complete; a task goes on"),
        }
    }
}

fn remedy(status: u16) -> &'static str {
    match status {
        401 => "; give a token as SABIR_TOKEN",
        404 => "; is MCP switched off there (mcp.enabled)?",
        _ => "",
    }
}

/// The lines of the standard output, written on a thread of their own: a host that does not read holds up nothing else. The
/// second half resolves when all are written, or when the host reads no more.
fn lines_to_host() -> (mpsc::Sender<Vec<u8>>, oneshot::Receiver<()>) {
    let (sender, mut lines) = mpsc::channel::<Vec<u8>>(MOST_WAITING);
    let (over, written) = oneshot::channel();
    std::thread::spawn(move || {
        let mut out = io::stdout().lock();
        while let Some(line) = lines.blocking_recv() {
            if out.write_all(&line).and_then(|()| out.flush()).is_err() {
                break;
            }
        }
        drop(lines);
        let _ = over.send(());
    });
    (sender, written)
}

/// The lines of the standard input, read on a thread of their own: nothing else waits for a file that may be silent for ever.
fn lines_of_host() -> mpsc::Receiver<io::Result<Vec<u8>>> {
    let (sender, lines) = mpsc::channel(16);
    std::thread::spawn(move || {
        let mut input = io::stdin().lock();
        loop {
            let mut line = Vec::new();
            let read = (&mut input).take(LONGEST_LINE).read_until(b'\n', &mut line);
            let next = match read {
                Ok(0) => return,
                Ok(_) if line.len() as u64 == LONGEST_LINE => Err(io::Error::other("a message is longer than 64 MiB")),
                Ok(_) => Ok(line),
                Err(error) => Err(error),
            };
            let is_last = next.is_err();
            if sender.blocking_send(next).is_err() || is_last {
                return;
            }
        }
    });
    lines
}

/// As MCP has values that are no plain text: base64 of UTF-8 between marks.
fn header_value(text: &str) -> Option<HeaderValue> {
    let is_plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~')) && text.trim() == text;
    let is_marked = text.starts_with("=?base64?") && text.ends_with("?=");
    let value = if is_plain && !is_marked {
        text.to_owned()
    } else {
        format!("=?base64?{}?=", Base64::encode(text.as_bytes()).as_str())
    };
    HeaderValue::try_from(value).ok()
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

//! Receivers of webhooks as bad as they come: they answer late or with an error, hang up, or are gone for a while. They
//! write down everything that arrives.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::dialect_client::{DialectClient, REFERENCE};
use crate::random::Random;

/// Each has an address of its own, and is gone at other times.
const RECEIVERS: u64 = 3;
const GONE: Duration = Duration::from_secs(1);

pub struct WebhookReceivers {
    addresses: Vec<SocketAddr>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// By the name of the webhook, in the order in which they came.
    arrivals: Mutex<HashMap<String, Vec<Arrival>>>,
    /// From now on every delivery is taken.
    is_kind: AtomicBool,
    connections: AtomicU64,
}

/// A request that was read to its end.
#[derive(Debug, Clone)]
pub struct Arrival {
    pub id: String,
    /// `None`: the body is none that a webhook gets.
    pub told: Option<Told>,
    pub body_hash: u64,
    /// The answer said that it was taken.
    pub is_taken: bool,
}

/// What a body tells. States have their names of 0.3.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    Status {
        state: String,
        time: String,
    },
    Artifact {
        text: String,
    },
    /// The task, and how long the texts of all its artifacts are.
    Task {
        state: String,
        time: String,
        made: usize,
    },
}

#[derive(Clone, Copy)]
enum Answer {
    Take,
    TakeLate,
    /// With a body that nobody needs.
    TakeAtLength,
    Fail,
    /// 429 with so many seconds.
    Later(u64),
    HangUp,
}

const ANSWERS: [(u64, Answer); 7] = [
    (80, Answer::Take),
    (6, Answer::TakeLate),
    (2, Answer::TakeAtLength),
    (4, Answer::Fail),
    (2, Answer::Later(0)),
    (2, Answer::Later(1)),
    (4, Answer::HangUp),
];

/// The token that belongs to a webhook.
pub fn token_of(webhook: &str) -> String {
    format!("token-of-{webhook}")
}

impl WebhookReceivers {
    /// They last as long as this program.
    pub fn start(seed: u64) -> Self {
        let shared = Arc::new(Shared::default());
        let start = |number: u64| {
            let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
            let address = listener.local_addr().expect("it has an address");
            let (shared, is_gone) = (shared.clone(), Arc::new(AtomicBool::new(false)));
            let (now_gone, random) = (is_gone.clone(), Random::new(seed ^ ((number + 1) << 40)));
            thread::spawn(move || come_and_go(&now_gone, random));
            thread::spawn(move || accept(&listener, &shared, &is_gone, seed));
            address
        };
        Self { addresses: (0..RECEIVERS).map(start).collect(), shared }
    }

    pub fn url(&self, webhook: &str, random: &mut Random) -> String {
        format!("http://{}/{webhook}", random.one_of(&self.addresses))
    }

    /// Everything is taken from now on, so that the rest can arrive.
    pub fn be_kind(&self) {
        self.shared.is_kind.store(true, Ordering::SeqCst);
    }

    pub fn arrivals_of(&self, webhook: &str) -> Vec<Arrival> {
        self.shared.arrivals().get(webhook).cloned().unwrap_or_default()
    }
}

impl Shared {
    fn arrivals(&self) -> std::sync::MutexGuard<'_, HashMap<String, Vec<Arrival>>> {
        self.arrivals.lock().expect("nobody panics over it")
    }
}

fn come_and_go(is_gone: &AtomicBool, mut random: Random) {
    loop {
        thread::sleep(Duration::from_millis(random.between(1500, 8000)));
        is_gone.store(true, Ordering::SeqCst);
        thread::sleep(GONE);
        is_gone.store(false, Ordering::SeqCst);
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>, is_gone: &Arc<AtomicBool>, seed: u64) {
    for connection in listener.incoming().flatten() {
        let (shared, is_gone) = (shared.clone(), is_gone.clone());
        thread::spawn(move || {
            let number = shared.connections.fetch_add(1, Ordering::SeqCst);
            // The server may have been killed; then it comes again.
            let _ = serve(connection, &shared, &is_gone, Random::new(seed ^ number.rotate_left(32)));
        });
    }
}

fn serve(connection: TcpStream, shared: &Shared, is_gone: &AtomicBool, mut random: Random) -> io::Result<()> {
    let is_kind = || shared.is_kind.load(Ordering::SeqCst);
    // An answer is several small writes.
    connection.set_nodelay(true)?;
    let mut answers = connection.try_clone()?;
    let mut reader = BufReader::new(connection);
    while is_kind() || !is_gone.load(Ordering::SeqCst) {
        let Some(Request { webhook, id, token, body }) = read(&mut reader)? else { return Ok(()) };
        if is_gone.load(Ordering::SeqCst) && !is_kind() {
            return Ok(());
        }
        let answer = if is_kind() { Answer::Take } else { random.weighted(&ANSWERS) };
        let is_known = token == token_of(&webhook);
        let is_taken = is_known && matches!(answer, Answer::Take | Answer::TakeLate | Answer::TakeAtLength);
        let mut hasher = DefaultHasher::new();
        body.hash(&mut hasher);
        let arrival = Arrival { id, told: told(&body), body_hash: hasher.finish(), is_taken };
        shared.arrivals().entry(webhook).or_default().push(arrival);
        let (head, length) = match answer {
            _ if !is_known => ("401 Unauthorized".to_owned(), 0),
            Answer::Take => ("200 OK".to_owned(), 0),
            Answer::TakeLate => {
                thread::sleep(Duration::from_millis(random.between(20, 600)));
                ("204 No Content".to_owned(), 0)
            }
            Answer::TakeAtLength => ("202 Accepted".to_owned(), 200_000),
            Answer::Fail => ("500 Internal Server Error".to_owned(), 20),
            Answer::Later(seconds) => (format!("429 Too Many Requests\r\nRetry-After: {seconds}"), 0),
            Answer::HangUp => return Ok(()),
        };
        let length_header =
            if head.starts_with("204") { String::new() } else { format!("Content-Length: {length}\r\n") };
        write!(answers, "HTTP/1.1 {head}\r\n{length_header}\r\n{}", "x".repeat(length))?;
    }
    Ok(())
}

struct Request {
    webhook: String,
    id: String,
    token: String,
    body: String,
}

/// The next request of a connection; `None`: there is none.
fn read(reader: &mut impl BufRead) -> io::Result<Option<Request>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let path = line.split(' ').nth(1).unwrap_or_default();
    let mut request = Request {
        webhook: path[path.len().min(1)..].to_owned(),
        id: String::new(),
        token: String::new(),
        body: String::new(),
    };
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        let Some((name, value)) = header.trim_end().split_once(": ") else { break };
        match name.to_ascii_lowercase().as_str() {
            "webhook-id" => request.id = value.to_owned(),
            "x-a2a-notification-token" => request.token = value.to_owned(),
            "content-length" => length = value.parse().unwrap_or(0),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    request.body = String::from_utf8_lossy(&body).into_owned();
    Ok(Some(request))
}

fn told(body: &str) -> Option<Told> {
    let body: Value = serde_json::from_str(body).ok()?;
    let time = |holder: &Value| Some(holder["status"]["timestamp"].as_str()?.to_owned());
    if let Some(update) = body.get("statusUpdate") {
        return Some(Told::Status { state: DialectClient::state(&update["status"])?, time: time(update)? });
    }
    if let Some(update) = body.get("artifactUpdate") {
        return Some(Told::Artifact { text: REFERENCE.text_of(&update["artifact"]) });
    }
    let task = body.get("task").unwrap_or(&body);
    let view = REFERENCE.read_task(task)?;
    Some(Told::Task { state: view.state, time: time(task)?, made: view.made.map_or(0, |made| made.len()) })
}

//! A small OpenID provider: discovery, keys, and tokens for client credentials.
//!
//! It signs with real keys and rotates them. A test can make each of its documents fail, hang, lie or lead elsewhere, and
//! can count how often it was asked. `answer` is the provider without a network; `serve` puts it on a loopback port.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::oidc_keys::IssuerKey;

pub struct OidcProvider {
    pub issuer: String,
    state: Mutex<State>,
}

struct State {
    keys: Vec<Arc<IssuerKey>>,
    /// Instead of the honest answer, by path.
    faults: HashMap<String, ProviderAnswer>,
    /// Every request, by path.
    requests: Vec<String>,
}

/// What the provider answers.
#[derive(Debug, Clone, PartialEq)]
pub enum ProviderAnswer {
    Document(String),
    Status(u16),
    Redirect(String),
    /// Nothing, ever.
    Hang,
}

pub const DISCOVERY: &str = "/.well-known/openid-configuration";
pub const KEYS: &str = "/keys";
pub const TOKENS: &str = "/token";

/// The client that gets tokens.
pub const CLIENT: (&str, &str) = ("test-client", "test-secret");

/// The audience of tokens from the token endpoint.
pub const AUDIENCE: &str = "sabir";

impl OidcProvider {
    /// With one key, whose id is `first`.
    pub fn new(issuer: &str) -> Self {
        let keys = vec![Arc::new(IssuerKey::generate("first", "ES256"))];
        let state = State { keys, faults: HashMap::new(), requests: Vec::new() };
        OidcProvider { issuer: issuer.to_owned(), state: Mutex::new(state) }
    }

    /// The newest key.
    pub fn key(&self) -> Arc<IssuerKey> {
        self.state().keys.last().expect("there is a key").clone()
    }

    /// Publishes a further key, which signs from now on.
    pub fn add_key(&self, key: IssuerKey) -> Arc<IssuerKey> {
        let key = Arc::new(key);
        self.state().keys.push(key.clone());
        key
    }

    /// Does not publish the keys with this id any more.
    pub fn remove_key(&self, id: &str) {
        self.state().keys.retain(|key| key.id.as_deref() != Some(id));
    }

    /// From now on, this path answers so.
    pub fn fail(&self, path: &str, answer: ProviderAnswer) {
        self.state().faults.insert(path.to_owned(), answer);
    }

    /// From now on, this path answers honestly.
    pub fn mend(&self, path: &str) {
        self.state().faults.remove(path);
    }

    /// How often this path was asked for.
    pub fn requests(&self, path: &str) -> usize {
        self.state().requests.iter().filter(|asked| *asked == path).count()
    }

    /// Claims of a token that is valid from `now` on for an hour; in seconds since 1970.
    pub fn claims(&self, subject: &str, now: i64) -> Value {
        json!({"iss": self.issuer, "aud": AUDIENCE, "sub": subject, "iat": now, "exp": now + 3600})
    }

    pub fn discovery(&self) -> Value {
        let issuer = self.issuer.trim_end_matches('/');
        json!({
            "issuer": self.issuer,
            "jwks_uri": format!("{issuer}{KEYS}"),
            "authorization_endpoint": format!("{issuer}/authorize"),
            "token_endpoint": format!("{issuer}{TOKENS}"),
            "scopes_supported": ["openid", "run", "read"],
        })
    }

    pub fn key_set(&self) -> Value {
        let keys: Vec<Value> = self.state().keys.iter().map(|key| key.jwk()).collect();
        json!({"keys": keys})
    }

    /// What a GET of this path is answered.
    pub fn answer(&self, path: &str) -> ProviderAnswer {
        let fault = {
            let mut state = self.state();
            state.requests.push(path.to_owned());
            state.faults.get(path).cloned()
        };
        fault.unwrap_or_else(|| match path {
            DISCOVERY => ProviderAnswer::Document(self.discovery().to_string()),
            KEYS => ProviderAnswer::Document(self.key_set().to_string()),
            _ => ProviderAnswer::Status(404),
        })
    }

    /// The token endpoint: RFC 6749, section 4.4, with the client in the body.
    fn grant(&self, form: &str) -> ProviderAnswer {
        let field = |name: &str| {
            form.split('&')
                .find_map(|pair| pair.split_once('=').filter(|(key, _)| *key == name))
                .map(|(_, value)| value)
        };
        let client = (field("client_id").unwrap_or_default(), field("client_secret").unwrap_or_default());
        if client != CLIENT || field("grant_type") != Some("client_credentials") {
            return ProviderAnswer::Status(401);
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64;
        let mut claims = self.claims(CLIENT.0, now);
        if let Some(scope) = field("scope") {
            claims["scope"] = json!(scope.replace('+', " ").replace("%20", " "));
        }
        let token = self.key().token(&claims);
        let body = json!({"access_token": token, "token_type": "Bearer", "expires_in": 3600});
        ProviderAnswer::Document(body.to_string())
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

/// A provider on a loopback port, until this is dropped.
pub struct ServedProvider {
    pub provider: Arc<OidcProvider>,
    pub address: SocketAddr,
    is_closed: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl ServedProvider {
    /// The issuer is `http://127.0.0.1:PORT`.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let provider = Arc::new(OidcProvider::new(&format!("http://{address}")));
        let is_closed = Arc::new(AtomicBool::new(false));
        let (served, closed) = (provider.clone(), is_closed.clone());
        let thread = thread::spawn(move || {
            // Connections that wait for an answer which never comes.
            let mut hanging = Vec::new();
            for stream in listener.incoming().flatten() {
                if closed.load(Ordering::SeqCst) {
                    return;
                }
                hanging.extend(respond(&served, stream));
            }
        });
        ServedProvider { provider, address, is_closed, thread: Some(thread) }
    }
}

impl Drop for ServedProvider {
    fn drop(&mut self) {
        self.is_closed.store(true, Ordering::SeqCst);
        // Wakes the thread.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Answers one request and closes, or hands back a connection that gets no answer.
fn respond(provider: &OidcProvider, stream: TcpStream) -> Option<TcpStream> {
    stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let (method, path) = line.split_once(' ').map(|(method, rest)| (method, rest.split(' ').next().unwrap_or("")))?;
    let (method, path) = (method.to_owned(), path.to_owned());
    let mut length = 0;
    loop {
        line.clear();
        reader.read_line(&mut line).ok()?;
        match line.trim_end().split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => length = value.trim().parse().ok()?,
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let answer = match (method.as_str(), path.as_str()) {
        ("POST", TOKENS) => provider.grant(&String::from_utf8_lossy(&body)),
        _ => provider.answer(&path),
    };
    let mut stream = reader.into_inner();
    let (head, body) = match answer {
        ProviderAnswer::Hang => return Some(stream),
        ProviderAnswer::Document(text) => ("200 OK\r\nContent-Type: application/json".to_owned(), text),
        ProviderAnswer::Status(status) => (format!("{status} Status"), String::new()),
        ProviderAnswer::Redirect(url) => (format!("302 Found\r\nLocation: {url}"), String::new()),
    };
    let head = format!("HTTP/1.1 {head}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
    let _ = stream.write_all(format!("{head}{body}").as_bytes());
    None
}

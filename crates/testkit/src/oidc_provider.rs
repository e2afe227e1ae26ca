//! A small OpenID provider: discovery, keys, and tokens for client credentials and in exchange for other tokens.
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

use sabir_model::Base64;
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
    token_requests: Vec<TokenRequest>,
    /// Tokens that are exchanged for others.
    subjects: Vec<String>,
}

/// What the token endpoint was asked, and what it answered.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenRequest {
    /// Decoded, in the order of the form.
    pub form: Vec<(String, String)>,
    pub authorization: Option<String>,
    /// The token that was issued.
    pub issued: Option<String>,
}

impl TokenRequest {
    pub fn field(&self, name: &str) -> Option<&str> {
        self.form.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
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
        let (requests, token_requests, subjects) = (Vec::new(), Vec::new(), Vec::new());
        let state = State { keys, faults: HashMap::new(), requests, token_requests, subjects };
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

    /// Whoever shows this token gets another one for it (RFC 8693).
    pub fn accept_subject(&self, token: &str) {
        self.state().subjects.push(token.to_owned());
    }

    /// What the token endpoint was asked so far.
    pub fn token_requests(&self) -> Vec<TokenRequest> {
        self.state().token_requests.clone()
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

    /// The token endpoint: client credentials (RFC 6749, section 4.4) and token exchange (RFC 8693).
    fn grant(&self, body: &str, authorization: Option<String>) -> ProviderAnswer {
        let mut request = TokenRequest { form: form(body), authorization, issued: None };
        let fault = {
            let mut state = self.state();
            state.requests.push(TOKENS.to_owned());
            state.faults.get(TOKENS).cloned()
        };
        let subject = self.subject(&request);
        if let (None, Some(subject)) = (&fault, subject) {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64;
            let mut claims = self.claims(&subject, now);
            if let Some(scope) = request.field("scope") {
                claims["scope"] = json!(scope);
            }
            request.issued = Some(self.key().token(&claims));
        }
        let issued = request.issued.clone();
        self.state().token_requests.push(request);
        match (fault, issued) {
            (Some(fault), _) => fault,
            (None, None) => ProviderAnswer::Status(401),
            (None, Some(token)) => {
                let body = json!({"access_token": token, "token_type": "Bearer", "expires_in": 3600});
                ProviderAnswer::Document(body.to_string())
            }
        }
    }

    /// Who gets a token by this request, if anybody does.
    fn subject(&self, request: &TokenRequest) -> Option<String> {
        let in_form = (request.field("client_id"), request.field("client_secret"));
        let basic = Base64::encode(format!("{}:{}", CLIENT.0, CLIENT.1).as_bytes());
        let is_in_header = request.authorization.as_deref() == Some(&format!("Basic {}", basic.as_str()));
        let is_client = is_in_header || in_form == (Some(CLIENT.0), Some(CLIENT.1));
        match request.field("grant_type")? {
            "client_credentials" => is_client.then(|| CLIENT.0.to_owned()),
            "urn:ietf:params:oauth:grant-type:token-exchange" => {
                let token = request.field("subject_token")?;
                request.field("subject_token_type")?;
                self.state().subjects.iter().any(|known| known == token).then(|| format!("exchanged {token}"))
            }
            _ => None,
        }
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

/// The fields of a form. What is malformed is left as it is.
fn form(body: &str) -> Vec<(String, String)> {
    let pairs = body.split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (decoded(name), decoded(value))).collect()
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let hex = |digits: &[u8]| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok();
        match (first, after.get(..2).and_then(hex)) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &after[2..];
                continue;
            }
            (b'+', _) => bytes.push(b' '),
            (other, _) => bytes.push(*other),
        }
        rest = after;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Answers one request and closes, or hands back a connection that gets no answer.
fn respond(provider: &OidcProvider, stream: TcpStream) -> Option<TcpStream> {
    stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let (method, path) = line.split_once(' ').map(|(method, rest)| (method, rest.split(' ').next().unwrap_or("")))?;
    let (method, path) = (method.to_owned(), path.to_owned());
    let (mut length, mut authorization) = (0, None);
    loop {
        line.clear();
        reader.read_line(&mut line).ok()?;
        match line.trim_end().split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => length = value.trim().parse().ok()?,
            Some((name, value)) if name.eq_ignore_ascii_case("authorization") => {
                authorization = Some(value.trim().to_owned());
            }
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let answer = match (method.as_str(), path.as_str()) {
        ("POST", TOKENS) => provider.grant(&String::from_utf8_lossy(&body), authorization),
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

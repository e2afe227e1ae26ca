//! The server in this process, with the demo agent behind it and nothing on disk.

mod admin;
mod auth;
mod backup;
mod connections;
mod console;
mod delegation;
mod http2;
mod limits;
mod mcp;
mod memory;
mod openai;
mod peers;
mod signed_cards;
mod tls;
mod webhooks;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use sabir_agents::DemoAgent;
use sabir_engine::{Builder, Hosted, Inputs};
use sabir_model::AgentId;
use sabir_server::{
    AdminAccess, App, AuthSettings, CardSettings, CatalogueAccess, Console, CorsSettings, HostCheck, Listeners, OpenAi,
    PeerLimit, RequestLimits, ServerFacts, ServerSettings, Timeouts, Tls, TrustedProxies,
};
use sabir_store::MemoryStore;
use sabir_wire::{CardFormat, Compat};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::watch;

/// A server that ends when this is dropped.
struct Served {
    address: SocketAddr,
    app: App,
    _closing: watch::Sender<bool>,
}

async fn serve() -> Served {
    serve_with(|settings| settings).await
}

async fn serve_with(change: impl FnOnce(ServerSettings) -> ServerSettings) -> Served {
    serve_engine(Builder::new(Arc::new(MemoryStore::new())), change).await
}

async fn serve_engine(builder: Builder, change: impl FnOnce(ServerSettings) -> ServerSettings) -> Served {
    serve_all(builder, change, None).await
}

async fn serve_all(
    builder: Builder,
    change: impl FnOnce(ServerSettings) -> ServerSettings,
    tls: Option<Arc<Tls>>,
) -> Served {
    let id = AgentId::parse("demo").unwrap();
    let agent = Hosted::new(id, Arc::new(DemoAgent::new(Inputs::Anything)));
    let engine = builder.agent(agent).start().await.unwrap();
    let card = CardSettings {
        grpc: sabir_server::GrpcAddress::OfBase,
        name: None,
        description: None,
        organization: None,
        organization_url: None,
        version: "1".into(),
        documentation_url: None,
        icon_url: None,
        base: None,
        default_format: CardFormat::Hybrid,
        max_age: Duration::from_secs(30),
        catalogue: CatalogueAccess::Callers,
    };
    let settings = change(ServerSettings {
        body_limit: 1024 * 1024,
        memory: 64 * 1024 * 1024,
        max_connections: 1000,
        per_peer: PeerLimit { most: 1000, exempt: Vec::new() },
        timeouts: Timeouts::default(),
        keep_alive: Duration::from_secs(15),
        compat: Compat::default(),
        hosts: HostCheck::Off,
        hosts_beyond_loopback: HostCheck::Off,
        trusted_proxies: TrustedProxies::default(),
        cors: CorsSettings::default(),
        auth: AuthSettings::default(),
        limits: RequestLimits::default(),
        admin: AdminAccess::Loopback,
        jwks: None,
        console: Console::Served,
        card,
        card_signer: None,
        facts: ServerFacts::default(),
        metrics: None,
        call_observer: None,
        mcp: Some(Duration::from_secs(50)),
        openai: OpenAi::Served,
    });
    let listeners = Listeners::bind(&["127.0.0.1:0".parse().unwrap()]).await.unwrap();
    let listeners = match tls {
        Some(tls) => listeners.with_tls(tls),
        None => listeners,
    };
    let address = listeners.addresses()[0];
    let (closing, closed) = watch::channel(false);
    let app = App::new(engine, settings);
    tokio::spawn(listeners.serve(app.clone(), closed, Duration::ZERO));
    Served { address, app, _closing: closing }
}

/// One request on a connection of its own.
async fn ask(address: SocketAddr, verb: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Told {
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let mut request = format!("{verb} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
    if !headers.iter().any(|(name, _)| *name == "Host") {
        request += "Host: localhost\r\n";
    }
    if !body.is_empty() {
        request += "Content-Type: application/json\r\n";
    }
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    stream.write_all(format!("{request}\r\n{body}").as_bytes()).await.unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).await.unwrap();
    let (head, body) = reply.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Told { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
}

/// What a request was answered.
struct Told {
    status: u16,
    /// In lower case.
    head: String,
    body: String,
}

impl Told {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error} in {:?}", self.body))
    }
}

/// Waits until this is so.
async fn until(is_so: impl Fn() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), waiting).await.expect("it comes to be so");
}

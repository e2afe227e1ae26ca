//! The server in this process, with the demo agent behind it and nothing on disk.

mod connections;
mod http2;
mod memory;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use sabir_agents::DemoAgent;
use sabir_engine::{Builder, Hosted, Inputs};
use sabir_model::AgentId;
use sabir_server::{App, CardSettings, CorsSettings, HostCheck, Listeners, ServerSettings, Timeouts};
use sabir_store::MemoryStore;
use sabir_wire::{CardFormat, Compat};
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
    let id = AgentId::parse("demo").unwrap();
    let agent = Hosted::new(id, Arc::new(DemoAgent::new(Inputs::Anything)));
    let engine = Builder::new(Arc::new(MemoryStore::new())).agent(agent).start().await.unwrap();
    let card = CardSettings {
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
    };
    let settings = change(ServerSettings {
        body_limit: 1024 * 1024,
        memory: 64 * 1024 * 1024,
        max_connections: 1000,
        timeouts: Timeouts::default(),
        keep_alive: Duration::from_secs(15),
        compat: Compat::default(),
        hosts: HostCheck::Off,
        cors: CorsSettings::default(),
        card,
    });
    let listeners = Listeners::bind(&["127.0.0.1:0".parse().unwrap()]).await.unwrap();
    let address = listeners.addresses()[0];
    let (closing, closed) = watch::channel(false);
    let app = App::new(engine, settings);
    tokio::spawn(listeners.serve(app.clone(), closed, Duration::ZERO));
    Served { address, app, _closing: closing }
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

//! The server in this process, with the demo agent behind it and nothing on disk.

mod http2;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use sabir_agents::DemoAgent;
use sabir_engine::{Builder, Hosted, Inputs};
use sabir_model::AgentId;
use sabir_server::{App, CardProfile, CardSettings, CorsSettings, HostCheck, Listeners, ServerSettings};
use sabir_store::MemoryStore;
use sabir_wire::Compat;
use tokio::sync::watch;

/// Serves until the returned sender is dropped.
async fn serve() -> (SocketAddr, watch::Sender<bool>) {
    serve_with(|settings| settings).await
}

async fn serve_with(change: impl FnOnce(ServerSettings) -> ServerSettings) -> (SocketAddr, watch::Sender<bool>) {
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
        pure: false,
        profile: CardProfile::A2a,
        max_age: Duration::from_secs(30),
    };
    let settings = change(ServerSettings {
        body_limit: 1024 * 1024,
        keep_alive: Duration::from_secs(15),
        compat: Compat::default(),
        hosts: HostCheck::Off,
        cors: CorsSettings::default(),
        card,
    });
    let listeners = Listeners::bind(&["127.0.0.1:0".parse().unwrap()]).await.unwrap();
    let address = listeners.addresses()[0];
    let (closing, closed) = watch::channel(false);
    tokio::spawn(listeners.serve(App::new(engine, settings), closed, async {}, Duration::ZERO));
    (address, closing)
}

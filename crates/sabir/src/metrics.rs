//! Puts the figures of all rooms into one registry, and serves them on an address of their own if that is wanted.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use sabir_engine::EngineMetrics;
use sabir_outbound::webhooks::DeliveryCounts;
use sabir_server::{App, Listeners, METRICS_PREFIX, Metrics};
use sabir_store::StoreMetrics;
use tokio::sync::watch;

use crate::config::MetricsSection;

/// The figures of the rooms, each of which is given its own.
#[derive(Default)]
pub struct Figures {
    pub store: StoreMetrics,
    pub engine: EngineMetrics,
    pub deliveries: DeliveryCounts,
}

impl Figures {
    /// `None`: no figures are kept.
    pub fn of(config: &MetricsSection) -> Option<Self> {
        config.enabled.then(Figures::default)
    }

    /// What the server shows.
    pub fn metrics(&self) -> Arc<Metrics> {
        let mut registry = Registry::with_prefix(METRICS_PREFIX);
        let version = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "The version of the server", version);
        self.engine.register(&mut registry);
        self.store.register(&mut registry);
        self.deliveries.register(&mut registry);
        Arc::new(Metrics::new(registry))
    }
}

/// Addresses that have nothing but figures and health.
pub struct MetricsListeners(Listeners);

impl MetricsListeners {
    /// `None`: none are wanted.
    pub async fn bind(config: &MetricsSection) -> anyhow::Result<Option<Self>> {
        if config.listen.is_empty() {
            return Ok(None);
        }
        let listeners = Listeners::bind(&config.listen).await.map_err(|unavailable| {
            anyhow::anyhow!("metrics.listen: cannot listen on {}: {}", unavailable.address, unavailable.error)
        })?;
        for address in listeners.addresses() {
            if !address.ip().to_canonical().is_loopback() {
                tracing::warn!(%address, "metrics.listen: whoever reaches this address can read the metrics, without a credential");
            }
        }
        Ok(Some(Self(listeners)))
    }

    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.0.addresses()
    }

    pub fn serve(self, app: &App, closing: watch::Receiver<bool>, linger: Duration) {
        tokio::spawn(self.0.serve(app.for_scrapers(), closing, linger));
    }
}

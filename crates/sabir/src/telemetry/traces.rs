//! Starts and stops the traces of a server.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use sabir_engine::RunObserver;
use sabir_server::CallObserver;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::calls::CallSpans;
use super::exporter::Exporter;
use super::queue::SpanQueue;
use super::runs::RunSpans;
use super::settings::TraceSettings;
use super::span::Tracer;

/// How long the end of a server waits for the collector.
const LAST_EXPORT: Duration = Duration::from_secs(2);

/// The traces of a server that has a collector.
pub struct Traces {
    tracer: Arc<Tracer>,
    stop: watch::Sender<bool>,
    exporting: JoinHandle<()>,
}

impl Traces {
    /// Reads the `OTEL_*` variables. `None`: they name no collector, or one that cannot be used, which is logged. `node` is the
    /// name of this server among others.
    pub fn start(variables: &[(OsString, OsString)], node: Option<&str>) -> Option<Self> {
        let (settings, warnings) = TraceSettings::read(variables, node);
        for warning in warnings {
            tracing::warn!("{warning}");
        }
        let settings = settings?;
        let queue = Arc::new(SpanQueue::new(&settings.batches));
        let tracer = Arc::new(Tracer { sampler: settings.sampler, queue: queue.clone() });
        let endpoint = settings.shown_endpoint();
        let exporter = match Exporter::new(settings, queue) {
            Ok(exporter) => exporter,
            Err(error) => {
                tracing::warn!(endpoint, error, "no traces are sent; correct the OTEL_EXPORTER_OTLP_ variables");
                return None;
            }
        };
        tracing::info!(endpoint, "traces are sent to a collector");
        let (stop, stopping) = watch::channel(false);
        Some(Self { tracer, stop, exporting: tokio::spawn(exporter.run(stopping)) })
    }

    pub fn calls(&self) -> Arc<dyn CallObserver> {
        Arc::new(CallSpans(self.tracer.clone()))
    }

    pub fn runs(&self) -> Arc<dyn RunObserver> {
        Arc::new(RunSpans(self.tracer.clone()))
    }

    /// Sends what is left, as far as the collector takes it in time.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        if tokio::time::timeout(LAST_EXPORT, self.exporting).await.is_err() {
            tracing::warn!("the collector did not take the last spans within {LAST_EXPORT:?}");
        }
    }
}

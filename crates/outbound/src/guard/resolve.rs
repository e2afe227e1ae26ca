//! Name look-ups.

use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::Semaphore;

/// Who resolves host names. Tests bring their own.
pub trait Resolve: Send + Sync {
    /// All addresses of a name. An empty answer counts as a failure.
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// The resolver of the operating system.
///
/// It blocks a thread for as long as a name server is silent, and nothing can end it. So the number of look-ups under way
/// is bounded: callers who bring slow names must not use up the threads that others block on.
pub struct SystemResolver {
    places: Arc<Semaphore>,
    timeout: Duration,
}

const LOOKUPS_AT_ONCE: usize = 32;
const TIMEOUT: Duration = Duration::from_secs(5);

impl Default for SystemResolver {
    fn default() -> Self {
        SystemResolver { places: Arc::new(Semaphore::new(LOOKUPS_AT_ONCE)), timeout: TIMEOUT }
    }
}

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        let lookup = async {
            let place = Arc::clone(&self.places).acquire_owned().await.expect("nobody closes the semaphore");
            let name = name.to_owned();
            let lookup = tokio::task::spawn_blocking(move || {
                let _place = place;
                let addresses = (name.as_str(), 0).to_socket_addrs()?;
                Ok(addresses.map(|address| address.ip()).collect())
            });
            lookup.await?
        };
        Box::pin(async move { tokio::time::timeout(self.timeout, lookup).await? })
    }
}

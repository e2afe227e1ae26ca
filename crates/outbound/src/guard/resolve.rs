//! Name look-ups.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// Who resolves host names. Tests bring their own.
pub trait Resolve: Send + Sync {
    /// All addresses of a name. An empty answer counts as a failure.
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// The resolver of the operating system.
///
/// It blocks a thread for as long as a name server is silent, and nothing can end it. So the number of look-ups under way
/// is bounded, and those who ask for the same name at the same time share one: a name that is slow and asked for often
/// must not take the places of all others. Nothing is remembered once a look-up has ended.
pub struct SystemResolver {
    lookup: Lookup,
    places: Arc<Semaphore>,
    under_way: Arc<Mutex<HashMap<String, Flight>>>,
}

type Lookup = fn(&str) -> io::Result<Vec<IpAddr>>;

/// `io::Error` cannot be cloned for all who wait; what it says can.
type Answer = Result<Vec<IpAddr>, String>;
type Flight = Shared<BoxFuture<'static, Answer>>;

const LOOKUPS_AT_ONCE: usize = 64;
const TIMEOUT: Duration = Duration::from_secs(5);

impl Default for SystemResolver {
    fn default() -> Self {
        Self::with(system_lookup)
    }
}

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        let flight = self.join(name);
        Box::pin(async move { timeout(TIMEOUT, flight).await?.map_err(io::Error::other) })
    }
}

impl SystemResolver {
    fn with(lookup: Lookup) -> Self {
        SystemResolver { lookup, places: Arc::new(Semaphore::new(LOOKUPS_AT_ONCE)), under_way: Arc::default() }
    }

    /// The look-up of this name that is under way, or a new one.
    fn join(&self, name: &str) -> Flight {
        let mut under_way = self.under_way.lock().expect("nobody panics while holding this lock");
        if let Some(flight) = under_way.get(name) {
            return flight.clone();
        }
        let flight = self.start(name.to_owned());
        under_way.insert(name.to_owned(), flight.clone());
        flight
    }

    /// A task of its own, since whoever waits for it may go away.
    fn start(&self, name: String) -> Flight {
        let (lookup, places, under_way) = (self.lookup, Arc::clone(&self.places), Arc::clone(&self.under_way));
        let task = tokio::spawn(async move {
            let answer = match timeout(TIMEOUT, places.acquire()).await {
                Ok(_place) => {
                    let name = name.clone();
                    let answer = tokio::task::spawn_blocking(move || lookup(&name)).await;
                    answer.map_err(io::Error::from).flatten().map_err(|error| error.to_string())
                }
                Err(_) => Err("too many look-ups are under way".to_owned()),
            };
            under_way.lock().expect("nobody panics while holding this lock").remove(&name);
            answer
        });
        task.map(|answer| answer.unwrap_or_else(|error| Err(error.to_string()))).boxed().shared()
    }
}

fn system_lookup(name: &str) -> io::Result<Vec<IpAddr>> {
    let addresses = (name, 0).to_socket_addrs()?;
    Ok(addresses.map(|address| address.ip()).collect())
}

#[cfg(test)]
mod tests {
    use std::sync::RwLock;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::future::join_all;

    use super::*;

    #[tokio::test]
    async fn those_who_ask_for_a_name_at_the_same_time_share_a_lookup() {
        static LOOKUPS: AtomicUsize = AtomicUsize::new(0);
        static GATE: RwLock<()> = RwLock::new(());
        let resolver = SystemResolver::with(|name| {
            LOOKUPS.fetch_add(1, Ordering::SeqCst);
            let _open = GATE.read().unwrap();
            if name == "missing" { Err(io::Error::other("no such name")) } else { Ok(vec![[127, 0, 0, 1].into()]) }
        });
        let closed = GATE.write().unwrap();
        let asked = |name| join_all((0..1000).map(|_| resolver.join(name)).collect::<Vec<_>>());
        let (slow, missing) = (asked("slow"), asked("missing"));
        drop(closed);
        assert!(slow.await.iter().all(|answer| answer.is_ok()));
        assert!(missing.await.iter().all(|answer| *answer == Err("no such name".to_owned())));
        assert_eq!(LOOKUPS.load(Ordering::SeqCst), 2);
        resolver.resolve("slow").await.unwrap();
        assert_eq!(LOOKUPS.load(Ordering::SeqCst), 3, "an answer is not remembered");
        assert!(resolver.under_way.lock().unwrap().is_empty());
    }
}

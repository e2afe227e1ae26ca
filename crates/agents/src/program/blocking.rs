//! Runs file work on threads that may block.
//!
//! A disk may be slow, and a folder may be on a mount that does not respond: such a call cannot be canceled. So file work
//! has its own threads, every wait for it has a time limit, and the number of stuck threads is limited. The store reads on
//! threads of the same pool, which has far more.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// Limit for reading a few files, or writing those of a message. A slow disk under load takes seconds for that.
pub(super) const SHORT: Duration = Duration::from_secs(30);
/// Limit for all files of a tree, of which there may be a million.
pub(super) const LONG: Duration = Duration::from_secs(600);

/// How many threads file work may use. Stuck work keeps its thread.
const MAX_THREADS: usize = 64;
static THREADS: Semaphore = Semaphore::const_new(MAX_THREADS);

/// How many of them one workspace may use, so that a workspace that does not respond leaves threads for the others.
const MAX_IN_WORKSPACE: usize = 4;
static WORKSPACES: LazyLock<Mutex<HashMap<PathBuf, Arc<Semaphore>>>> = LazyLock::new(Mutex::default);

/// The file system did not answer in this time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoAnswer(Duration);

impl fmt::Display for NoAnswer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "the file system did not answer within {} s", self.0.as_secs())
    }
}

impl std::error::Error for NoAnswer {}

/// Does the work on another thread. After the limit the work may still run there, but nobody waits for it.
pub(super) async fn blocking<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, NoAnswer> {
    let working = async {
        let permit = THREADS.acquire().await.ok()?;
        let done = spawn_blocking(move || {
            let _permit = permit;
            work()
        });
        match done.await {
            Ok(done) => Some(done),
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            // The runtime ends.
            Err(_) => None,
        }
    };
    timeout(limit, working).await.ok().flatten().ok_or(NoAnswer(limit))
}

/// Like `blocking`, for the first access to a configured workspace in a turn.
pub(super) async fn blocking_in<T: Send + 'static>(
    workspace: &Path,
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, NoAnswer> {
    let threads = {
        let mut workspaces = WORKSPACES.lock().unwrap_or_else(PoisonError::into_inner);
        let threads = || Arc::new(Semaphore::new(MAX_IN_WORKSPACE));
        Arc::clone(workspaces.entry(workspace.to_owned()).or_insert_with(threads))
    };
    let permit = timeout(limit, threads.acquire_owned()).await.map_err(|_| NoAnswer(limit))?;
    blocking(limit, move || {
        let _permit = permit;
        work()
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn nobody_waits_for_ever_and_the_rest_goes_on() {
        let (release, stuck) = mpsc::channel::<()>();
        let waited = blocking(Duration::from_millis(1), move || stuck.recv()).await;
        assert_eq!(waited.unwrap_err(), NoAnswer(Duration::from_millis(1)));
        assert_eq!(blocking(LONG, || 7).await, Ok(7));
        drop(release);
    }

    #[tokio::test]
    async fn a_workspace_that_is_gone_leaves_room_for_others() {
        let (release, stuck) = mpsc::channel::<()>();
        let stuck = Arc::new(Mutex::new(stuck));
        for _ in 0..2 * MAX_THREADS {
            let stuck = stuck.clone();
            let waited = blocking_in(Path::new("/gone"), Duration::from_millis(1), move || {
                let _ = stuck.lock().map(|stuck| stuck.recv());
            });
            assert!(waited.await.is_err());
        }
        assert_eq!(blocking_in(Path::new("/there"), LONG, || 7).await, Ok(7));
        drop(release);
    }
}

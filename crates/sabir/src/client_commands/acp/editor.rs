//! The other end of the pipes: the editor, which gets notifications and answers, and is asked for permission.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use sabir_model::Json;
use serde::Serialize;
use tokio::sync::{mpsc, oneshot};

use super::json_rpc::{self, RpcError};
use super::session_update::{SessionNotification, SessionUpdate};

pub struct Editor {
    out: mpsc::Sender<Vec<u8>>,
    next_id: AtomicU64,
    /// Requests of ours that wait for an answer.
    waiting: Mutex<HashMap<u64, oneshot::Sender<Result<Json, String>>>>,
}

/// A request of ours. Dropping it means that nobody waits for the answer any more.
struct Asked<'a> {
    editor: &'a Editor,
    id: u64,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        self.editor.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}

impl Editor {
    pub fn new(out: mpsc::Sender<Vec<u8>>) -> Self {
        Editor { out, next_id: AtomicU64::new(1), waiting: Mutex::default() }
    }

    /// Waits while the editor has not read what came before. One that has gone misses nothing.
    async fn write(&self, line: Vec<u8>) {
        let _ = self.out.send(line).await;
    }

    pub async fn answer(&self, id: &Json, outcome: Result<Json, RpcError>) {
        self.write(match outcome {
            Ok(result) => json_rpc::result(id, &result),
            Err(error) => json_rpc::refusal(Some(id), &error),
        })
        .await;
    }

    /// What is wrong with a message.
    pub async fn refuse(&self, id: Option<&Json>, error: &RpcError) {
        self.write(json_rpc::refusal(id, error)).await;
    }

    pub async fn update(&self, session_id: &str, update: &SessionUpdate) {
        let params = SessionNotification { session_id, update };
        self.write(json_rpc::notification("session/update", &params)).await;
    }

    /// Asks the editor, and waits for its answer. An error is the editor's own, in words.
    pub async fn ask(&self, method: &'static str, params: &impl Serialize) -> Result<Json, String> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(id, sender);
        let _asked = Asked { editor: self, id };
        self.write(json_rpc::request(id, method, params)).await;
        answer.await.unwrap_or_else(|_| Err("the editor has gone".to_owned()))
    }

    /// The editor has answered. Nobody may wait for it any more.
    pub fn answered(&self, id: &Json, outcome: Result<Json, String>) {
        let waiting = id
            .as_str()
            .parse::<u64>()
            .ok()
            .and_then(|id| self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&id));
        if let Some(waiting) = waiting {
            let _ = waiting.send(outcome);
        }
    }
}

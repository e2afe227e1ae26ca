//! `GET /admin/v1/store/backup`: everything in the store, as a stream to the one who asks. No file is written here.
//!
//! The store is read on a thread of its own, since SQLite blocks, and only as fast as the client takes it: two pieces of about a
//! megabyte wait at most. A client that takes nothing for as long as replies may take ends its backup, since the store must keep
//! what is being read as it was. One backup at a time.

use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http::{HeaderValue, Response, StatusCode, header};
use hyper::body::Frame;
use sabir_engine::BackupStream;
use sabir_model::Caller;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::timeout;

use super::{AdminRefusal, with_status};
use crate::app::App;
use crate::body::Body;

/// Pieces that wait for the client.
const WAITING_PIECES: usize = 2;

impl App {
    pub(super) async fn backup(&self, caller: &Caller) -> Result<Response<Body>, AdminRefusal> {
        let conflict = |detail: &str| AdminRefusal::Problem { status: StatusCode::CONFLICT, detail: detail.to_owned() };
        let place = self.inner.backup_place.clone().try_acquire_owned();
        let place = place.map_err(|_| conflict("another backup is being made; wait until it is over"))?;
        let engine = &self.inner.engine;
        let backup = engine.begin_backup(caller).await?;
        let backup =
            backup.ok_or_else(|| conflict("tasks in memory (memory:) are not stored, so there is no backup"))?;
        tracing::info!("an operator takes a backup of the store");
        let (pieces, mut waiting) = mpsc::channel(WAITING_PIECES);
        let (handle, patience) = (Handle::current(), self.inner.settings.timeouts.reply);
        tokio::task::spawn_blocking(move || handle.block_on(read(backup, pieces, patience, place)));
        let frames = stream::poll_fn(move |context| waiting.poll_recv(context));
        let mut response = with_status(StatusCode::OK, "application/octet-stream", Vec::new());
        *response.body_mut() = Body::stream(frames);
        let name = HeaderValue::from_static("attachment; filename=\"sabir.backup\"");
        response.headers_mut().insert(header::CONTENT_DISPOSITION, name);
        Ok(response)
    }
}

/// Hands the pieces over until the backup is over, the client is gone, or something fails.
async fn read(
    mut backup: BackupStream,
    pieces: mpsc::Sender<Frame<Bytes>>,
    patience: Duration,
    _place: OwnedSemaphorePermit,
) {
    let mut bytes = 0;
    loop {
        let piece = match backup.next_piece().await {
            Ok(Some(piece)) => piece,
            Ok(None) => return tracing::info!(bytes, "the backup is complete"),
            Err(error) => {
                tracing::warn!(%error, "the backup broke off");
                let last = BackupStream::broken_off(&error.to_string());
                let _ = timeout(patience, pieces.send(Frame::data(last.into()))).await;
                return;
            }
        };
        bytes += piece.len();
        match timeout(patience, pieces.send(Frame::data(piece.into()))).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return tracing::warn!(bytes, "the client of the backup is gone before its end"),
            Err(_) => {
                return tracing::warn!(
                    bytes,
                    ?patience,
                    "the client of the backup takes nothing; the backup broke off"
                );
            }
        }
    }
}

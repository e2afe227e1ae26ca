//! Makes a backup, piece by piece.

use aws_lc_rs::digest::{Context, SHA256};
use sabir_model::{Seq, Timestamp};

use super::{BackupHeader, FrameKind, MAGIC};
use crate::canonical::CanonicalWriter;
use crate::transfer::{ContextKey, ExportTasks};
use crate::{StoreError, StoreFuture};

/// About so much is read at once.
const PIECE_BYTES: usize = 1 << 20;
const PIECE_ROWS: usize = 1000;

/// The bytes of a backup, in pieces of about a megabyte.
pub struct BackupStream {
    source: Box<dyn ExportTasks>,
    version: String,
    time: Timestamp,
    position: Position,
    digest: Context,
}

/// What comes next.
enum Position {
    Header,
    TasksAfter(u64),
    PacksAfter { task: u64, event: Seq },
    ContextsAfter(Option<ContextKey>),
    AuditAfter(u64),
    Over,
}

impl BackupStream {
    /// `version` is that of the program, `time` is now.
    pub fn new(source: Box<dyn ExportTasks>, version: impl Into<String>, time: Timestamp) -> Self {
        let digest = Context::new(&SHA256);
        Self { source, version: version.into(), time, position: Position::Header, digest }
    }

    /// The next piece; `None`: that was all. With SQLite it blocks while it reads.
    ///
    /// # Errors
    /// The store cannot be read. What was made so far is not a whole backup.
    pub fn next_piece(&mut self) -> StoreFuture<'_, Option<Vec<u8>>> {
        Box::pin(async move {
            loop {
                if let Position::Over = self.position {
                    return Ok(None);
                }
                let piece = self.piece().await?;
                if !piece.is_empty() {
                    return Ok(Some(piece));
                }
            }
        })
    }

    /// The last piece of a backup that breaks off: it says why.
    pub fn broken_off(reason: &str) -> Vec<u8> {
        let mut piece = Vec::new();
        add_frame(&mut piece, FrameKind::BrokenOff, reason.as_bytes());
        piece
    }

    async fn piece(&mut self) -> Result<Vec<u8>, StoreError> {
        let mut piece = Vec::new();
        self.position = match std::mem::replace(&mut self.position, Position::Over) {
            Position::Header => {
                piece.extend_from_slice(MAGIC);
                let (version, time) = (self.version.clone(), self.time.as_millis());
                let header = BackupHeader { version, time, size: self.source.size().await? };
                let header = serde_json::to_vec(&header).expect("texts and numbers can be written as JSON");
                add_frame(&mut piece, FrameKind::Begin, &header);
                Position::TasksAfter(0)
            }
            Position::TasksAfter(after) => {
                let tasks = self.source.task_parts(after, PIECE_BYTES).await?;
                for task in &tasks {
                    add_frame(&mut piece, FrameKind::Task, &task.canonical());
                }
                match tasks.last() {
                    Some(last) if last.in_row.is_some() => Position::TasksAfter(last.no),
                    Some(last) => Position::PacksAfter { task: last.no, event: last.last_event() },
                    None => Position::ContextsAfter(None),
                }
            }
            Position::PacksAfter { task, event } => {
                let packs = self.source.packs(task, event, PIECE_BYTES).await?;
                match packs.last() {
                    Some((last, _)) => {
                        let mut payload = CanonicalWriter(Vec::new());
                        payload.packs(&packs);
                        add_frame(&mut piece, FrameKind::Packs, &payload.0);
                        Position::PacksAfter { task, event: *last }
                    }
                    None => Position::TasksAfter(task),
                }
            }
            Position::ContextsAfter(after) => {
                let states = self.source.agent_states(after, PIECE_ROWS).await?;
                for state in &states {
                    add_frame(&mut piece, FrameKind::Context, &state.canonical());
                }
                states.last().map_or(Position::AuditAfter(0), |last| Position::ContextsAfter(Some(last.key.clone())))
            }
            Position::AuditAfter(after) => {
                let entries = self.source.audit(after, PIECE_ROWS).await?;
                for entry in &entries {
                    add_frame(&mut piece, FrameKind::Audit, &entry.canonical());
                }
                match entries.last() {
                    Some(last) => Position::AuditAfter(last.number),
                    None => {
                        let digest = self.digest.clone().finish();
                        add_frame(&mut piece, FrameKind::End, digest.as_ref());
                        Position::Over
                    }
                }
            }
            Position::Over => Position::Over,
        };
        self.digest.update(&piece);
        Ok(piece)
    }
}

fn add_frame(piece: &mut Vec<u8>, kind: FrameKind, payload: &[u8]) {
    piece.push(kind as isize as u8);
    piece.extend_from_slice(&u32::try_from(payload.len()).unwrap_or(u32::MAX).to_be_bytes());
    piece.extend_from_slice(payload);
}

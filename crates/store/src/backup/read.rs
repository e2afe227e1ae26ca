//! Reads the rows of a backup that was found whole.

use std::io::{ErrorKind, Read};

use super::{BackupError, FRAME_HEAD, FrameKind, MAGIC};
use crate::canonical::CanonicalReader;
use crate::damage::Damage;
use crate::transfer::{TransferredAgentState, TransferredAudit, TransferredTask};

pub struct BackupReader<R> {
    input: R,
    /// Read already: more of its log may follow.
    task: Option<Box<TransferredTask>>,
    /// Read already, and to be returned after that task.
    next: Option<BackupRow>,
    is_over: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BackupRow {
    Task(Box<TransferredTask>),
    AgentState(TransferredAgentState),
    Audit(TransferredAudit),
}

impl<R: Read> BackupReader<R> {
    /// # Errors
    /// It is no backup.
    pub fn new(mut input: R) -> Result<Self, BackupError> {
        let mut magic = [0; MAGIC.len()];
        read_whole(&mut input, &mut magic)?;
        match magic == MAGIC {
            true => Ok(Self { input, task: None, next: None, is_over: false }),
            false => Err(BackupError::Foreign),
        }
    }

    /// The next row; `None`: that was all. Not an iterator, since nothing can be read after an error.
    ///
    /// # Errors
    /// The rest cannot be read.
    pub fn next_row(&mut self) -> Result<Option<BackupRow>, BackupError> {
        if let Some(row) = self.next.take() {
            return Ok(Some(row));
        }
        if self.is_over {
            return Ok(None);
        }
        loop {
            let mut head = [0; FRAME_HEAD];
            read_whole(&mut self.input, &mut head)?;
            let (kind, length) = FrameKind::parse(head)?;
            let payload = self.payload(length)?;
            let damaged = |what: &str| {
                let what = what.to_owned();
                move |Damage(reason): Damage| BackupError::Damaged(format!("{what}: {reason}"))
            };
            let row = match kind {
                FrameKind::Begin => continue,
                FrameKind::Packs => {
                    let packs = CanonicalReader(&payload).packs().map_err(damaged("the log of a task"))?;
                    match &mut self.task {
                        Some(task) => task.packs.extend(packs),
                        None => return Err(BackupError::Damaged("it has the log of no task".into())),
                    }
                    continue;
                }
                FrameKind::Task => {
                    let task = TransferredTask::from_canonical(&payload).map_err(damaged("a task"))?;
                    match self.task.replace(Box::new(task)) {
                        Some(before) => return Ok(Some(BackupRow::Task(before))),
                        None => continue,
                    }
                }
                FrameKind::Context => {
                    let state = TransferredAgentState::from_canonical(&payload).map_err(damaged("a context"))?;
                    BackupRow::AgentState(state)
                }
                FrameKind::Audit => {
                    let entry = TransferredAudit::from_canonical(&payload);
                    BackupRow::Audit(entry.map_err(damaged("an entry of the audit log"))?)
                }
                FrameKind::BrokenOff => {
                    return Err(BackupError::BrokenOff(String::from_utf8_lossy(&payload).into_owned()));
                }
                FrameKind::End => {
                    self.is_over = true;
                    return Ok(self.task.take().map(BackupRow::Task));
                }
            };
            return Ok(Some(match self.task.take() {
                Some(task) => {
                    self.next = Some(row);
                    BackupRow::Task(task)
                }
                None => row,
            }));
        }
    }

    /// Grows with what is read, so that a wrong length takes no memory.
    fn payload(&mut self, length: usize) -> Result<Vec<u8>, BackupError> {
        let mut payload = Vec::new();
        (&mut self.input).take(length as u64).read_to_end(&mut payload)?;
        match payload.len() == length {
            true => Ok(payload),
            false => Err(BackupError::CutOff),
        }
    }
}

fn read_whole(input: &mut impl Read, bytes: &mut [u8]) -> Result<(), BackupError> {
    input.read_exact(bytes).map_err(|error| match error.kind() {
        ErrorKind::UnexpectedEof => BackupError::CutOff,
        _ => error.into(),
    })
}

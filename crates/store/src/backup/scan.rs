//! Looks over the bytes of a backup as they come, and says whether it is whole. Rows are counted, not read.

use aws_lc_rs::digest::{Context, SHA256};

use super::{ANY_MAGIC, BackupError, BackupHeader, FRAME_HEAD, FrameKind, MAGIC};

pub struct BackupScanner {
    /// Of everything before the current frame.
    digest: Context,
    /// Bytes that are not looked at yet: the start of a head, or of a payload that is kept.
    kept: Vec<u8>,
    position: Position,
    header: Option<BackupHeader>,
    tasks: u64,
    contexts: u64,
    audit_entries: u64,
}

enum Position {
    Magic,
    Head,
    /// So much of a payload that is not kept is still to come.
    Skipping(usize),
    /// A payload of this kind and length is being kept.
    Keeping(FrameKind, usize),
    /// With the digest of the whole backup.
    Over([u8; 32]),
}

impl Default for BackupScanner {
    fn default() -> Self {
        Self {
            digest: Context::new(&SHA256),
            kept: Vec::new(),
            position: Position::Magic,
            header: None,
            tasks: 0,
            contexts: 0,
            audit_entries: 0,
        }
    }
}

impl BackupScanner {
    /// The next bytes, in pieces of any length.
    ///
    /// # Errors
    /// It is no backup, or not a whole one.
    pub fn feed(&mut self, mut bytes: &[u8]) -> Result<(), BackupError> {
        while !bytes.is_empty() {
            bytes = match self.position {
                Position::Magic => self.magic(bytes)?,
                Position::Head => self.head(bytes)?,
                Position::Skipping(left) => {
                    let (skipped, rest) = bytes.split_at(left.min(bytes.len()));
                    self.digest.update(skipped);
                    self.position = match left - skipped.len() {
                        0 => Position::Head,
                        left => Position::Skipping(left),
                    };
                    rest
                }
                Position::Keeping(kind, length) => self.payload(kind, length, bytes)?,
                Position::Over(_) => return Err(BackupError::Damaged("something follows its end".into())),
            };
        }
        Ok(())
    }

    /// What the backup says of itself, and the digest that tells it from others.
    ///
    /// # Errors
    /// Its end is missing.
    pub fn finish(self) -> Result<(BackupHeader, [u8; 32]), BackupError> {
        match (self.position, self.header) {
            (Position::Over(digest), Some(header)) => Ok((header, digest)),
            (Position::Magic, _) => Err(BackupError::Foreign),
            _ => Err(BackupError::CutOff),
        }
    }

    /// How many tasks have come, and how many there are.
    pub fn progress(&self) -> (u64, u64) {
        (self.tasks, self.header.as_ref().map_or(0, |header| header.size.tasks))
    }

    /// Adds to what is kept until it has this length. Returns whether it has, and the rest.
    fn keep<'a>(&mut self, length: usize, bytes: &'a [u8]) -> (bool, &'a [u8]) {
        let missing = length - self.kept.len();
        let (taken, rest) = bytes.split_at(missing.min(bytes.len()));
        self.kept.extend_from_slice(taken);
        (self.kept.len() == length, rest)
    }

    fn magic<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], BackupError> {
        let (is_complete, rest) = self.keep(MAGIC.len(), bytes);
        let common = self.kept.len().min(ANY_MAGIC.len());
        if self.kept[..common] != ANY_MAGIC[..common] {
            return Err(BackupError::Foreign);
        }
        if is_complete {
            if self.kept != MAGIC {
                return Err(BackupError::Newer);
            }
            self.digest.update(MAGIC);
            self.kept.clear();
            self.position = Position::Head;
        }
        Ok(rest)
    }

    fn head<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], BackupError> {
        let (is_complete, rest) = self.keep(FRAME_HEAD, bytes);
        if !is_complete {
            return Ok(rest);
        }
        let head = self.kept.as_slice().try_into().expect("the head is complete");
        let (kind, length) = FrameKind::parse(head)?;
        self.kept.clear();
        if self.header.is_none() && kind != FrameKind::Begin {
            return Err(BackupError::Damaged("it has no header".into()));
        }
        match kind {
            FrameKind::Task => self.tasks += 1,
            FrameKind::Context => self.contexts += 1,
            FrameKind::Audit => self.audit_entries += 1,
            FrameKind::Begin | FrameKind::Packs | FrameKind::BrokenOff | FrameKind::End => {}
        }
        self.position = match kind {
            FrameKind::Begin | FrameKind::BrokenOff | FrameKind::End if length > MOST_KEPT => {
                return Err(BackupError::Damaged("something in it is too large".into()));
            }
            FrameKind::Begin | FrameKind::BrokenOff | FrameKind::End if length > 0 => Position::Keeping(kind, length),
            _ if length > 0 => Position::Skipping(length),
            _ => Position::Head,
        };
        // The digest is of all before the last frame.
        if kind != FrameKind::End {
            self.digest.update(&head);
        }
        Ok(rest)
    }

    fn payload<'a>(&mut self, kind: FrameKind, length: usize, bytes: &'a [u8]) -> Result<&'a [u8], BackupError> {
        let (is_complete, rest) = self.keep(length, bytes);
        if !is_complete {
            return Ok(rest);
        }
        let payload = std::mem::take(&mut self.kept);
        self.position = Position::Head;
        match kind {
            FrameKind::BrokenOff => {
                return Err(BackupError::BrokenOff(String::from_utf8_lossy(&payload).into_owned()));
            }
            FrameKind::End => self.position = Position::Over(self.check_end(&payload)?),
            _ => {
                self.digest.update(&payload);
                let header = serde_json::from_slice(&payload);
                let header = header.map_err(|error| BackupError::Damaged(format!("its header: {error}")))?;
                self.header = Some(header);
            }
        }
        Ok(rest)
    }

    fn check_end(&self, expected: &[u8]) -> Result<[u8; 32], BackupError> {
        let digest: [u8; 32] = self.digest.clone().finish().as_ref().try_into().expect("SHA-256 has 32 bytes");
        if digest != expected {
            return Err(BackupError::Damaged("it has other bytes than were written".into()));
        }
        let size = self.header.as_ref().map(|header| header.size).unwrap_or_default();
        if (size.tasks, size.contexts, size.audit_entries) != (self.tasks, self.contexts, self.audit_entries) {
            return Err(BackupError::Damaged("it has not as many tasks as its header says".into()));
        }
        Ok(digest)
    }
}

/// Headers, reasons and digests are short.
const MOST_KEPT: usize = 64 << 10;

//! Backups: everything that a store keeps, as one stream of bytes that either store can be filled from.
//!
//! A backup has the rows of `transfer`, not the pages of a database file. So it has no format of SQLite or Postgres, is made
//! without a file on the server, and needs the memory of a few rows, however large the store is.
//!
//! ```text
//! Sabir backup 1\n
//! frame*             kind (1 byte), length of the payload (4 bytes, big-endian), payload
//! ```
//!
//! | kind | payload                                                                    | how many      |
//! |------|----------------------------------------------------------------------------|---------------|
//! | `B`  | the header, in JSON: what follows, and who made it                           | one, first    |
//! | `T`  | a task, and its log as far as it fits                                        | by number     |
//! | `P`  | more of the log of the task before                                           | any           |
//! | `C`  | what an agent remembers of a context                                         | any           |
//! | `A`  | an entry of the audit log                                                    | any           |
//! | `X`  | why the backup broke off                                                     | at most one, last |
//! | `E`  | the SHA-256 of all bytes before this frame                                   | one, last     |

mod read;
mod scan;
mod write;

use serde::{Deserialize, Serialize};

use crate::transfer::TransferSize;

pub use read::{BackupReader, BackupRow};
pub use scan::BackupScanner;
pub use write::BackupStream;

/// The first bytes of every backup of this format.
const MAGIC: &[u8] = b"Sabir backup 1\n";
/// The first bytes of a backup of any format.
const ANY_MAGIC: &[u8] = b"Sabir backup ";

/// The bytes in front of a payload.
const FRAME_HEAD: usize = 5;
/// No row of a store is larger. A length beyond it is damage.
const LARGEST_PAYLOAD: usize = 1 << 30;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FrameKind {
    Begin = b'B' as isize,
    Task = b'T' as isize,
    Packs = b'P' as isize,
    Context = b'C' as isize,
    Audit = b'A' as isize,
    BrokenOff = b'X' as isize,
    End = b'E' as isize,
}

impl FrameKind {
    /// The kind and the length of the payload.
    fn parse(head: [u8; FRAME_HEAD]) -> Result<(Self, usize), BackupError> {
        let [kind, length @ ..] = head;
        let kind = match kind {
            b'B' => Self::Begin,
            b'T' => Self::Task,
            b'P' => Self::Packs,
            b'C' => Self::Context,
            b'A' => Self::Audit,
            b'X' => Self::BrokenOff,
            b'E' => Self::End,
            _ => return Err(BackupError::Damaged("something in it is neither a task nor anything else known".into())),
        };
        let length = u32::from_be_bytes(length) as usize;
        match length <= LARGEST_PAYLOAD {
            true => Ok((kind, length)),
            false => Err(BackupError::Damaged("something in it is too large".into())),
        }
    }
}

/// What a backup says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupHeader {
    /// The version of Sabir that made it.
    pub version: String,
    /// When it was begun, in milliseconds since 1970. It has what was stored at that time.
    pub time: i64,
    #[serde(flatten)]
    pub size: TransferSize,
}

#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error("it is no backup of Sabir")]
    Foreign,
    #[error("it was made by a newer Sabir; restore it with that version")]
    Newer,
    #[error("its end is missing, so it is not complete")]
    CutOff,
    #[error("it is not complete: the server stopped writing it: {0}")]
    BrokenOff(String),
    #[error("it is damaged: {0}")]
    Damaged(String),
    #[error("it cannot be read: {0}")]
    Unreadable(#[from] std::io::Error),
}

/// Whether these first bytes are those of a backup.
pub fn is_backup(bytes: &[u8]) -> bool {
    bytes.starts_with(ANY_MAGIC)
}

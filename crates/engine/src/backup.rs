//! A copy of everything in the store, for operators. Tasks go on meanwhile.

use sabir_model::{Caller, Error};
use sabir_store::AuditAction;
use sabir_store::backup::BackupStream;

use crate::engine::Engine;

impl Engine {
    /// Begins a backup of what is stored now; `None`: this store cannot be copied. Reading it may block.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn begin_backup(&self, caller: &Caller) -> Result<Option<BackupStream>, Error> {
        let Some(source) = self.core.store.export().await? else { return Ok(None) };
        if self.core.audit.is_some() {
            self.record(Some(self.entry(caller, AuditAction::Backup))).await?;
        }
        Ok(Some(BackupStream::new(source, env!("CARGO_PKG_VERSION"), self.core.clock.now())))
    }
}

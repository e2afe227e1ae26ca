//! Opens stores for `sabir store`: to read all of one, or to fill one.

use anyhow::{Context, bail};
use sabir_store::transfer::{ExportTasks, ImportTasks};
use sabir_store::{OpenError, PostgresExport, PostgresImport, SqliteExport, SqliteImport};

use crate::config::StoreUrl;

pub async fn open_export(url: &StoreUrl) -> anyhow::Result<Box<dyn ExportTasks>> {
    match url {
        StoreUrl::Sqlite(path) => match SqliteExport::open(path) {
            Ok(export) => Ok(Box::new(export)),
            Err(OpenError::InUse(path)) => {
                let path = path.display();
                bail!(
                    "{path} is in use by a server; stop it first, or use a copy that `sabir store backup` and `restore` make"
                )
            }
            Err(error) => Err(error.into()),
        },
        StoreUrl::Postgres(url) => Ok(Box::new(PostgresExport::open(url.with_password()).await?)),
        StoreUrl::Memory => bail!("tasks in memory (memory:) are not stored anywhere"),
    }
}

pub async fn open_import(url: &StoreUrl) -> anyhow::Result<Box<dyn ImportTasks>> {
    match url {
        StoreUrl::Sqlite(path) => {
            if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
                let made = std::fs::create_dir_all(folder);
                made.with_context(|| format!("cannot make the folder {}", folder.display()))?;
            }
            Ok(Box::new(SqliteImport::open(path)?))
        }
        StoreUrl::Postgres(url) => Ok(Box::new(PostgresImport::open(url.with_password()).await?)),
        StoreUrl::Memory => bail!("memory: cannot be filled, since it ends with this command"),
    }
}

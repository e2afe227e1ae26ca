//! The command line of `store`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::RunningServer;

#[derive(Debug, Clone, Subcommand)]
pub enum StoreCommand {
    /// Read the whole store, and say whether every task is complete and readable
    #[command(after_help = CHECK_HELP)]
    Check(StoreCheckOptions),
    /// Copy everything from one store to another
    #[command(after_help = MIGRATE_HELP)]
    Migrate(MigrateOptions),
    /// Write everything that is in the store into a file, while servers go on
    #[command(after_help = BACKUP_HELP)]
    Backup(BackupOptions),
    /// Fill a store with what a backup has
    #[command(after_help = RESTORE_HELP)]
    Restore(RestoreOptions),
}

#[derive(Debug, Clone, Args)]
pub struct StoreCheckOptions {
    /// The store, instead of the one that `serve` would use here: sqlite:PATH or postgres://USER@HOST/DATABASE
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
    /// The configuration that names the store, instead of ./sabir.toml
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

#[derive(Debug, Clone, Args)]
pub struct MigrateOptions {
    /// Where the tasks are: sqlite:PATH or postgres://USER@HOST/DATABASE
    #[arg(long, value_name = "URL")]
    pub from: String,
    /// Where they are copied to. Rather in the environment if it has a password: others see command lines
    #[arg(long, value_name = "URL", env = "SABIR_STORE", hide_env_values = true)]
    pub to: String,
    /// The node that has the sessions of the source's coding programs on its disk. Without it the name of this machine
    #[arg(long, value_name = "NODE")]
    pub home: Option<String>,
}

#[derive(Debug, Clone, Args)]
pub struct BackupOptions {
    /// The file to write; - is the standard output
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The store, instead of the one that `serve` would use here: sqlite:PATH or postgres://USER@HOST/DATABASE
    #[arg(long, value_name = "URL", conflicts_with = "url")]
    pub store: Option<String>,
    #[command(flatten)]
    pub server: RunningServer,
}

#[derive(Debug, Clone, Args)]
pub struct RestoreOptions {
    /// The file that `sabir store backup` has written
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The store to fill, instead of the one that `serve` would use here: sqlite:PATH or postgres://USER@HOST/DATABASE
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
    /// The configuration that names the store, instead of ./sabir.toml
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Replace an SQLite database that is there already; it is kept beside, with the ending .before-restore
    #[arg(long)]
    pub force: bool,
    /// With Postgres: the node that has the sessions of the coding programs on its disk. Without it the name of this machine
    #[arg(long, value_name = "NODE")]
    pub home: Option<String>,
}

const BACKUP_HELP: &str = "Examples:
  sabir store backup sabir.backup
  sabir store backup - | zstd > sabir.backup.zst
  sabir store backup --url https://agents.example.com sabir.backup
  sabir store backup --store postgres://sabir@db.internal/sabir sabir.backup

A server that runs with the store is asked for the backup (GET /admin/v1/store/backup), and goes on meanwhile; one that asks for
credentials wants a token with the scope admin (SABIR_TOKEN). Without a server the store is opened.

The backup has every task as of one moment: all that was acknowledged before it began. It can be restored into SQLite and into
Postgres. It holds what callers have written, so only you can read the file. It is written as FILE.partial first; FILE itself is
there when the backup is complete and on the disk. A backup of that name is replaced; any other file is not.

What is not in the store is not in the backup: sabir.toml, the key of webhook secrets (store.key), folders of agents.

Exit codes: 0 the backup is complete, 1 it is not, and FILE was not touched.";

const RESTORE_HELP: &str = "Examples:
  sabir store restore sabir.backup
  sabir store restore --force sabir.backup
  sabir store restore --store postgres://sabir@db.internal/sabir sabir.backup

Stop all servers of the store first. The whole file is read and checked before anything is changed: one that is cut off, damaged or
not a backup is refused.

SQLite: the new database is made beside the old one, checked, and put in its place at once, so whenever the command ends or is
killed, one of the two is there. With --force the old one is kept as sabir.db.before-restore; without it an existing file is refused.
Postgres: the database must be empty. A restore that was interrupted continues where it ended when it is run again.

Tasks that were running or queued when the backup was made are taken up by the first server that starts, as after a restart.

Exit codes: 0 everything is restored, 1 it is not.";

const CHECK_HELP: &str = "Examples:
  sabir store check
  sabir store check --store sqlite:/var/lib/sabir/sabir.db
  sabir store check --store postgres://sabir@db.internal/sabir

It changes nothing. Every log must be without gaps and readable, the row of each task must agree with its log, and the totals
with the rows. Postgres can be checked while servers run; an SQLite file cannot: stop its server, or restore a backup into a new file
(`sabir store backup`, `sabir store restore --store sqlite:copy.db`) and check that.

Exit codes: 0 everything is well, 1 something is damaged or the store cannot be read.";

const MIGRATE_HELP: &str = "Examples:
  sabir store migrate --from sqlite:/var/lib/sabir/sabir.db --to postgres://sabir@db.internal/sabir
  SABIR_STORE=postgres://sabir:secret@db.internal/sabir sabir store migrate --from sqlite:sabir.db

Stop all servers of both stores first. The source is not changed. The target must be empty, or have an unfinished migration of
this very source: a second run continues where the first one ended. At the end every task is read from both stores and compared.

Tasks keep their numbers. Those that were running or queued are taken up by the first server that starts with the target, as after
a restart. Contexts of coding programs have their home at --home: start the node of that name on the machine where the source was.";

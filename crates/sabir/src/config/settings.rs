//! The one table of everything that can be set.
//!
//! A row names the key, its default as a person would write it, where else it can be set, a sentence for the
//! documentation, and how it is read into its field. A key that has no row here does not exist.

use serde_json::Value;

use super::kinds::*;
use super::raw::Raw;
use super::sections::*;
use super::store_url::store_url;

/// One row. `T` is what it is a setting of: the whole `Config`, or one `Agent`.
pub struct Setting<T: 'static> {
    /// `section.key`; for agents the key alone.
    pub key: &'static str,
    /// As text; empty means that it is not set.
    pub default: &'static str,
    #[allow(dead_code, reason = "the documentation is held against it by a test")]
    pub help: &'static str,
    /// A shorter environment name than the one made from the key.
    pub short: Option<&'static str>,
    #[allow(dead_code, reason = "the documentation is held against it by a test")]
    pub flag: Option<&'static str>,
    read: fn(&mut T, &Raw) -> Result<Value, String>,
}

impl<T> Setting<T> {
    /// Reads `raw` into its field. Answers with the value as `sabir config` shows it, or says what is wrong
    /// in words that follow the name of the setting: `is "soon"; expected a duration ...`.
    pub fn read(&self, target: &mut T, raw: &Raw) -> Result<Value, String> {
        (self.read)(target, raw)
    }

    const fn short(self, name: &'static str) -> Self {
        Setting { short: Some(name), ..self }
    }

    const fn flag(self, name: &'static str) -> Self {
        Setting { flag: Some(name), ..self }
    }
}

impl Setting<Config> {
    pub fn section(&self) -> &'static str {
        self.key.split_once('.').map_or("", |(section, _)| section)
    }

    pub fn leaf(&self) -> &'static str {
        self.key.split_once('.').map_or(self.key, |(_, leaf)| leaf)
    }

    /// `server.listen` is `SABIR_SERVER_LISTEN`.
    pub fn variable(&self) -> String {
        format!("SABIR_{}", self.key.replace('.', "_").to_uppercase())
    }
}

/// The setting of this key; the key is one of ours.
pub fn setting(key: &str) -> &'static Setting<Config> {
    let found = SETTINGS.iter().find(|setting| setting.key == key);
    found.expect("keys inside the program are keys of the table")
}

/// The agent setting of this key; the key is one of ours.
pub fn agent_setting(key: &str) -> &'static Setting<Agent> {
    let found = AGENT_SETTINGS.iter().find(|setting| setting.key == key);
    found.expect("keys inside the program are keys of the table")
}

/// Takes the place of a default that depends on the machine: a file in the user's data directory.
pub const DATA_DIRECTORY: &str = "sqlite:<data directory>/sabir/sabir.db";

pub static SETTINGS: &[Setting<Config>] = &[
    global(
        "server.listen",
        "127.0.0.1:41242",
        "Addresses to serve on, one or several. A port alone, with or without a colon, means loopback.",
        |config, raw| put(&mut config.server.listen, addresses(raw)?),
    )
    .short("SABIR_LISTEN")
    .flag("--listen"),
    global(
        "server.public_url",
        "",
        "The address under which clients reach this server; the card advertises it. Without it the first listen \
         address is used, or the Host of the request when that is a wildcard.",
        |config, raw| put(&mut config.server.public_url, web_url(raw)?),
    )
    .short("SABIR_PUBLIC_URL")
    .flag("--public-url"),
    global("server.body_limit", "16MiB", "The largest request body that is read.", |config, raw| {
        put(&mut config.server.body_limit, size(raw)?)
    }),
    global(
        "server.cors_origins",
        "",
        "Web origins whose pages may call from a browser, such as `https://app.example.com`, or `*` for all. \
         Empty switches CORS off; calls from pages of other origins are refused with 403.",
        |config, raw| put(&mut config.server.cors_origins, origins(raw)?),
    ),
    global(
        "server.allow_open",
        "false",
        "Serve on addresses that other machines can reach although nothing asks callers for credentials.",
        |config, raw| put(&mut config.server.allow_open, switch(raw)?),
    )
    .short("SABIR_ALLOW_OPEN")
    .flag("--allow-open"),
    global(
        "server.grace",
        "10s",
        "How long open requests may finish after SIGTERM before the server ends.",
        |config, raw| put(&mut config.server.grace, duration(raw)?),
    ),
    global(
        "server.keep_alive",
        "15s",
        "How often a silent stream sends a comment so that proxies keep it open.",
        |config, raw| put(&mut config.server.keep_alive, interval(raw)?),
    ),
    global(
        "store.url",
        DATA_DIRECTORY,
        "Where tasks are kept: `sqlite:PATH`, or `memory:` for trials (not durable: everything is lost when the \
         server stops).",
        |config, raw| put(&mut config.store.url, store_url(raw)?),
    )
    .short("SABIR_STORE")
    .flag("--store"),
    global(
        "store.durability",
        "full",
        "What an acknowledged write survives: `full` a power cut, `process` a killed process only, which is faster.",
        |config, raw| {
            let words = [("full", Durability::PowerCut), ("process", Durability::Process)];
            put(&mut config.store.durability, choice(raw, &words)?)
        },
    ),
    global(
        "card.name",
        "",
        "The server's name on its card. Without it a single agent's name is used.",
        |config, raw| put(&mut config.card.name, text(raw)?),
    ),
    global("card.description", "", "What the card says about the server.", |config, raw| {
        put(&mut config.card.description, text(raw)?)
    }),
    global(
        "card.organization",
        "",
        "Who runs the server, as the card's provider. Without it `Sabir`.",
        |config, raw| put(&mut config.card.organization, text(raw)?),
    ),
    global(
        "card.organization_url",
        "",
        "The provider's web address. Without it the public address of the server.",
        |config, raw| put(&mut config.card.organization_url, web_url(raw)?),
    ),
    global("card.version", "", "The version on the card. Without it the version of this program.", |config, raw| {
        put(&mut config.card.version, text(raw)?)
    }),
    global("card.documentation_url", "", "A page for the people who write clients.", |config, raw| {
        put(&mut config.card.documentation_url, web_url(raw)?)
    }),
    global("card.icon_url", "", "A picture for the card.", |config, raw| put(&mut config.card.icon_url, web_url(raw)?)),
    global(
        "card.pure",
        "false",
        "Keep the card to the keys of one protocol version. Otherwise it holds those of all versions, so that \
         every client finds its own.",
        |config, raw| put(&mut config.card.pure, switch(raw)?),
    ),
    global("card.max_age", "30s", "How long clients may keep the card before they ask again.", |config, raw| {
        put(&mut config.card.max_age, duration(raw)?)
    }),
    global(
        "compat.strict",
        "false",
        "Refuse sloppy requests (a missing messageId or role, old part spellings) on every mount.",
        |config, raw| put(&mut config.compat.strict, switch(raw)?),
    ),
    global(
        "compat.cancel_terminal",
        "auto",
        "The answer to a cancel of a finished task: `error`, `noop` (the task as it is), or `auto`, which is what \
         the caller's mount and spelling promise.",
        |config, raw| {
            let words =
                [("auto", CancelTerminal::Auto), ("error", CancelTerminal::Error), ("noop", CancelTerminal::Noop)];
            put(&mut config.compat.cancel_terminal, choice(raw, &words)?)
        },
    ),
    global(
        "compat.terminal_message",
        "error",
        "The answer to a message for a finished task: `error`, or `new_task` to start one in the same context.",
        |config, raw| {
            let words = [("error", TerminalMessage::Error), ("new_task", TerminalMessage::NewTask)];
            put(&mut config.compat.terminal_message, choice(raw, &words)?)
        },
    ),
    global(
        "send.max_wait",
        "off",
        "The longest that a blocking send waits; then it answers with the task as it is. The task goes on.",
        |config, raw| put(&mut config.send.max_wait, limit(raw)?),
    ),
    global(
        "recovery.running",
        "fail",
        "What becomes of tasks that were running when the server stopped: `fail` or `requeue`.",
        |config, raw| {
            let words = [("fail", RunningTasks::Fail), ("requeue", RunningTasks::Requeue)];
            put(&mut config.recovery.running, choice(raw, &words)?)
        },
    ),
    global("retention.max_age", "off", "Settled tasks older than this are deleted.", |config, raw| {
        put(&mut config.retention.max_age, limit(raw)?)
    }),
    global(
        "retention.max_tasks",
        "off",
        "When more tasks than this are stored, the oldest settled ones are deleted.",
        |config, raw| put(&mut config.retention.max_tasks, optional_count(raw)?),
    ),
    global(
        "log.level",
        "info",
        "What is logged: `off`, `error`, `warn`, `info`, `debug` or `trace`, also per module: `info,sabir=debug`.",
        |config, raw| put(&mut config.log.level, log_level(raw)?),
    )
    .flag("--log-level"),
    global("log.format", "text", "How log lines look: `text` or `json`.", |config, raw| {
        let words = [("text", LogFormat::Text), ("json", LogFormat::Json)];
        put(&mut config.log.format, choice(raw, &words)?)
    })
    .flag("--log-format"),
];

/// The keys of an `[[agent]]` table. `id` and `kind` must be there.
pub static AGENT_SETTINGS: &[Setting<Agent>] = &[
    agent(
        "id",
        "",
        "Its name in paths, and its tenant in 1.0: 1 to 64 letters, digits, dots, dashes and underscores.",
        |agent, raw| put(&mut agent.id, agent_id(raw)?),
    ),
    agent("kind", "", "What does the work: `demo` or `conformance`.", |agent, raw| {
        put(&mut agent.kind, agent_kind(raw)?)
    })
    .short("SABIR_AGENT")
    .flag("--agent"),
    agent("name", "", "Its name on cards. Without it the kind's own name.", |agent, raw| {
        put(&mut agent.name, text(raw)?)
    }),
    agent("description", "", "What cards say about it.", |agent, raw| put(&mut agent.description, text(raw)?)),
    agent(
        "default",
        "false",
        "Messages that name no agent go to this one. Without any such agent they go to the first by id.",
        |agent, raw| put(&mut agent.default, switch(raw)?),
    ),
    agent("max_concurrent", "10000", "How many of its tasks run at the same time.", |agent, raw| {
        put(&mut agent.max_concurrent, count(raw, 1..=1_000_000)?)
    }),
    agent("queue", "10000", "How many tasks may wait for their turn; further ones are refused.", |agent, raw| {
        put(&mut agent.queue, count(raw, 0..=1_000_000)?)
    }),
    agent("timeout", "off", "A run that takes longer fails.", |agent, raw| put(&mut agent.timeout, limit(raw)?)),
    agent("idle_timeout", "off", "A run that is silent for this long fails.", |agent, raw| {
        put(&mut agent.idle_timeout, limit(raw)?)
    }),
];

/// A row of a section.
const fn global(
    key: &'static str,
    default: &'static str,
    help: &'static str,
    read: fn(&mut Config, &Raw) -> Result<Value, String>,
) -> Setting<Config> {
    row(key, default, help, read)
}

/// A row of an `[[agent]]` table.
const fn agent(
    key: &'static str,
    default: &'static str,
    help: &'static str,
    read: fn(&mut Agent, &Raw) -> Result<Value, String>,
) -> Setting<Agent> {
    row(key, default, help, read)
}

const fn row<T>(
    key: &'static str,
    default: &'static str,
    help: &'static str,
    read: fn(&mut T, &Raw) -> Result<Value, String>,
) -> Setting<T> {
    Setting { key, default, help, short: None, flag: None, read }
}

fn put<V>(field: &mut V, (value, shown): (V, Value)) -> Result<Value, String> {
    *field = value;
    Ok(shown)
}

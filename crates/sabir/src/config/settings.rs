//! The one table of everything that the sections of the file can set.
//!
//! A key that has no row here does not exist.

use serde_json::Value;

use super::kinds::*;
use super::program_values::route;
use super::raw::Raw;
use super::sections::*;
use super::setting::{Setting, put};
use super::store_url::store_url;

/// The setting of this key; the key is one of ours.
pub fn setting(key: &str) -> &'static Setting<Config> {
    let found = SETTINGS.iter().find(|setting| setting.key == key);
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
        "server.memory",
        "256MiB",
        "What large requests and replies (over 64 KiB) may take together while they are on their way. Beyond it callers \
         get 503 with `Retry-After`.",
        |config, raw| put(&mut config.server.memory, size(raw)?),
    ),
    global(
        "server.cors_origins",
        "",
        "Web origins whose pages may call from a browser, such as `https://app.example.com`, or `*` for all. \
         Empty switches CORS off; calls from pages of other origins are refused with 403.",
        |config, raw| put(&mut config.server.cors_origins, origins(raw)?),
    ),
    global(
        "server.allowed_hosts",
        "",
        "Host names that requests may come to, such as `agents.example.com`, beside `localhost`, IP addresses, the name \
         of the machine and the host of `public_url`; or `*` for any. Requests to other names are refused with 421.",
        |config, raw| put(&mut config.server.allowed_hosts, hosts(raw)?),
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
        "How long the server may take to end after SIGTERM. It answers until all runs are over; what has not finished \
         shortly before the end is settled as `recovery.running` says.",
        |config, raw| put(&mut config.server.grace, duration(raw)?),
    ),
    global(
        "server.drain",
        "0s",
        "How long the server answers after SIGTERM at least, also when nothing runs, so that a load balancer sees \
         `/readyz` turn 503 first. New tasks are refused meanwhile.",
        |config, raw| put(&mut config.server.drain, duration(raw)?),
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
        "routing.complex",
        "",
        "Who gets messages to the default agent that are hard: `{ agent = \"id\", model = \"name\" }`. In the environment \
         `id` or `id model`. Without it the default agent itself.",
        |config, raw| put(&mut config.routing.complex, route(raw)?),
    ),
    global("routing.mid", "", "Who gets those that are neither, in the same way.", |config, raw| {
        put(&mut config.routing.mid, route(raw)?)
    }),
    global("routing.routine", "", "Who gets those that are easy, in the same way.", |config, raw| {
        put(&mut config.routing.routine, route(raw)?)
    }),
    global(
        "card.name",
        "",
        "The server's name on its card. Without it a single agent's name is used.",
        |config, raw| put(&mut config.card.name, optional_text(raw)?),
    ),
    global("card.description", "", "What the card says about the server.", |config, raw| {
        put(&mut config.card.description, optional_text(raw)?)
    }),
    global(
        "card.organization",
        "",
        "Who runs the server, as the card's provider. Without it `Sabir`.",
        |config, raw| put(&mut config.card.organization, optional_text(raw)?),
    ),
    global(
        "card.organization_url",
        "",
        "The provider's web address. Without it the public address of the server.",
        |config, raw| put(&mut config.card.organization_url, web_url(raw)?),
    ),
    global("card.version", "", "The version on the card. Without it the version of this program.", |config, raw| {
        put(&mut config.card.version, optional_text(raw)?)
    }),
    global("card.documentation_url", "", "A page for the people who write clients.", |config, raw| {
        put(&mut config.card.documentation_url, web_url(raw)?)
    }),
    global("card.icon_url", "", "A picture for the card.", |config, raw| put(&mut config.card.icon_url, web_url(raw)?)),
    global(
        "card.profile",
        "a2a",
        "Whose clients the card is for, where the request names no version: `a2a`, whose `url` takes JSON-RPC, or \
         `gateway`, whose `url` is the path of the gateway: `message:send` of a single agent, or the list of agents.",
        |config, raw| {
            let words = [("a2a", CardProfile::A2a), ("gateway", CardProfile::Gateway)];
            put(&mut config.card.profile, choice(raw, &words)?)
        },
    ),
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
        "push.enabled",
        "true",
        "Whether callers may have webhooks. Webhooks come in a later version; `false` keeps them off then too.",
        |config, raw| put(&mut config.push.enabled, switch(raw)?),
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
        "retention.waiting",
        "off",
        "Tasks that have waited for an answer for longer than this fail.",
        |config, raw| put(&mut config.retention.waiting, limit(raw)?),
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

/// A row of a section.
const fn global(
    key: &'static str,
    default: &'static str,
    help: &'static str,
    read: fn(&mut Config, &Raw) -> Result<Value, String>,
) -> Setting<Config> {
    Setting::new(key, default, help, read)
}

//! The one table of everything that the sections of the file can set, and what a row of such a table is.
//!
//! A key that has no row does not exist. The file, the environment, the command line, the hints for unknown keys,
//! `sabir config`, the JSON Schema and the documentation all read these rows.

use std::sync::LazyLock;

use sabir_engine::Recovery;
use sabir_server::ClientAuth;
use sabir_store::Durability;
use sabir_wire::{CancelTerminal, TerminalMessage};
use serde_json::Value;

use super::addresses::{
    address_range, host_and_port, host_names, listen_addresses, origin, web_url, webhook_host, webhook_ports,
    webhook_range,
};
use super::auth::{named_tokens, scope};
use super::node_folder::node_name;
use super::paths::{folder, pem_file, store_url};
use super::raw::Raw;
use super::secrets::{card_key, hmac_secret, signing_key, store_key};
use super::sections::{CardProfile, Config, LogFormat};
use super::table_values::route;
use super::values::*;

/// `T` is what it is a setting of: the whole `Config`, one `AgentConfig`, or a part of one.
pub struct Setting<T: 'static> {
    /// `section.key`, or the key alone in a table of a list.
    pub key: &'static str,
    /// As text; empty means that it is not set.
    pub default: &'static str,
    pub is_required: bool,
    pub for_whom: ForWhom,
    /// One or a few sentences for the documentation and for editors.
    pub help: &'static str,
    /// A shorter environment name than the one made from the key.
    pub short_variable: Option<&'static str>,
    #[allow(dead_code, reason = "the documentation is held against it by a test")]
    pub flag: Option<&'static str>,
    /// The value in a JSON Schema of the file.
    pub schema: Value,
    read: Box<ReadInto<T>>,
}

/// Reads a value into its field, and answers with how it is shown or with what is wrong.
type ReadInto<T> = dyn Fn(&mut T, &Raw) -> Result<Value, String> + Send + Sync;

/// The kinds of agents that a setting is for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ForWhom {
    All,
    Demo,
    Programs,
    /// Those that stand for remote agents.
    Remotes,
    /// A model behind a server.
    OpenAi,
    /// Programs, and models behind a server.
    ProgramsAndOpenAi,
    /// Whatever dials a server that the operator names: remote agents and models.
    RemotesAndOpenAi,
}

impl<T> Setting<T> {
    /// A row whose value goes into this field.
    pub fn new<V: 'static>(
        key: &'static str,
        default: &'static str,
        kind: ValueKind<V>,
        field: fn(&mut T) -> &mut V,
    ) -> Self {
        let schema = kind.schema.clone();
        let read = move |target: &mut T, raw: &Raw| {
            let (value, shown) = kind.read(raw)?;
            *field(target) = value;
            Ok(shown)
        };
        let read = Box::new(read);
        let (is_required, for_whom, help, short_variable, flag) = (false, ForWhom::All, "", None, None);
        Setting { key, default, is_required, for_whom, help, short_variable, flag, schema, read }
    }

    pub fn help(self, help: &'static str) -> Self {
        Setting { help, ..self }
    }

    pub fn required(self) -> Self {
        Setting { is_required: true, ..self }
    }

    pub fn only_for(self, for_whom: ForWhom) -> Self {
        Setting { for_whom, ..self }
    }

    pub fn short_variable(self, name: &'static str) -> Self {
        Setting { short_variable: Some(name), ..self }
    }

    pub fn flag(self, name: &'static str) -> Self {
        Setting { flag: Some(name), ..self }
    }

    /// The key without its section.
    pub fn leaf(&self) -> &'static str {
        self.key.split_once('.').map_or(self.key, |(_, leaf)| leaf)
    }

    /// Reads `raw` into its field. Answers with the value as `sabir config` shows it, or says what is wrong
    /// in words that follow the name of the setting: `is "soon"; expected a duration ...`.
    pub fn read(&self, target: &mut T, raw: &Raw) -> Result<Value, String> {
        (self.read)(target, raw)
    }
}

impl Setting<Config> {
    pub fn section(&self) -> &'static str {
        self.key.split_once('.').map_or("", |(section, _)| section)
    }

    /// `server.listen` is `SABIR_SERVER_LISTEN`.
    pub fn variable(&self) -> String {
        format!("SABIR_{}", self.key.replace('.', "_").to_uppercase())
    }

    /// Every environment name that sets it; the first one wins.
    pub fn variables(&self) -> impl Iterator<Item = String> {
        std::iter::once(self.variable()).chain(self.short_variable.map(str::to_owned))
    }
}

/// The row of this key; the key is one of ours.
pub fn row_of<T>(settings: &'static [Setting<T>], key: &str) -> &'static Setting<T> {
    settings.iter().find(|setting| setting.key == key).expect("keys inside the program are keys of the table")
}

/// Takes the place of a default that depends on the machine: a file in the user's data directory.
pub const DATA_DIRECTORY: &str = "sqlite:<data directory>/sabir/folders/<folder>/sabir.db";

pub static SETTINGS: LazyLock<Vec<Setting<Config>>> = LazyLock::new(|| {
    type Row = Setting<Config>;
    vec![
        Row::new("server.listen", "127.0.0.1:41242", listen_addresses(), |config| &mut config.server.listen)
            .help("Addresses to serve on, one or several. A port alone, with or without a colon, means loopback.")
            .short_variable("SABIR_LISTEN")
            .flag("--listen"),
        Row::new("server.public_url", "", optional(web_url()), |config| &mut config.server.public_url)
            .help(
                "The address under which clients reach this server; the card advertises it. Without it the first \
                 listen address is used, or the Host of the request when that is a wildcard.",
            )
            .short_variable("SABIR_PUBLIC_URL")
            .flag("--public-url"),
        Row::new("server.public_grpc", "", optional(host_and_port()), |config| &mut config.server.public_grpc).help(
            "Where clients reach this server over gRPC, such as `agents.example.com:443`; the card advertises it. \
             Without it and without `public_url` that is the listen address; with `public_url` alone the card \
             offers no gRPC, since nobody knows whether what stands in front passes it on.",
        ),
        Row::new("server.body_limit", "16MiB", size(), |config| &mut config.server.body_limit)
            .help("The largest request body that is read."),
        Row::new("server.memory", "256MiB", size(), |config| &mut config.server.memory).help(
            "What large requests and replies (over 64 KiB) may take together while they are on their way. \
             Beyond it callers get 503 with `Retry-After`.",
        ),
        Row::new("server.cors_origins", "", list(origin()), |config| &mut config.server.cors_origins).help(
            "Web origins whose pages may call from a browser, such as `https://app.example.com`, or `*` for \
             all. Empty switches CORS off; `*` lets no page make admin calls without a credential; calls from pages of \
             other origins are refused with 403.",
        ),
        Row::new("server.allowed_hosts", "", host_names(), |config| &mut config.server.allowed_hosts).help(
            "Host names that requests may come to, such as `agents.example.com`, beside `localhost`, IP \
             addresses, the name of the machine and the host of `public_url`; or `*` for any. Requests to \
             other names are refused with 421.",
        ),
        Row::new("server.allow_open", "false", switch(), |config| &mut config.server.allow_open)
            .help("Serve on addresses that other machines can reach although nothing asks callers for credentials.")
            .short_variable("SABIR_ALLOW_OPEN")
            .flag("--allow-open"),
        Row::new("server.grace", "10s", duration(), |config| &mut config.server.grace).help(
            "How long the server may take to end after SIGTERM. It answers until all runs are over; what has \
             not finished shortly before the end is settled as `recovery.running` says.",
        ),
        Row::new("server.drain", "0s", duration(), |config| &mut config.server.drain).help(
            "How long the server answers after SIGTERM at least, also when nothing runs, so that a load \
             balancer sees `/readyz` turn 503 first. New tasks are refused meanwhile.",
        ),
        Row::new("server.keep_alive", "15s", interval(), |config| &mut config.server.keep_alive)
            .help("How often a silent stream sends a comment so that proxies keep it open."),
        Row::new("server.tls_cert", "", optional(pem_file()), |config| &mut config.server.tls_cert).help(
            "A PEM file with the certificate of the server, followed by those between it and its authority. With it \
             all addresses speak HTTPS and nothing else. The file is read again when it changes.",
        ),
        Row::new("server.tls_key", "", optional(pem_file()), |config| &mut config.server.tls_key)
            .help("A PEM file with the private key of `tls_cert`, not encrypted."),
        Row::new("server.tls_client_ca", "", optional(pem_file()), |config| &mut config.server.tls_client_ca).help(
            "A PEM file with the authorities whose client certificates are accepted (mutual TLS). Without it clients are \
             not asked for certificates.",
        ),
        Row::new(
            "server.tls_client_auth",
            "optional",
            choice(&[("optional", ClientAuth::Optional), ("required", ClientAuth::Required)]),
            |config| &mut config.server.tls_client_auth,
        )
        .help(
            "Whether clients without a certificate may connect (`optional`) or not (`required`). One that \
             `tls_client_ca` did not sign is always refused.",
        ),
        Row::new("server.dev_tls", "false", switch(), |config| &mut config.server.dev_tls)
            .help(
                "Serve HTTPS with a certificate for this machine that Sabir makes, for trials: `localhost`, \
                 `127.0.0.1`, `::1` and the name of the machine. It lies beside the database and is valid for a year.",
            )
            .flag("--dev-tls"),
        Row::new("server.trusted_proxies", "", list(address_range()), |config| &mut config.server.trusted_proxies).help(
            "Addresses and ranges of proxies, such as `10.0.0.0/8`. Only what they say in `Forwarded`, `X-Forwarded-For` and \
             `X-Forwarded-Proto` is believed: who asks, and whether by https.",
        ),
        Row::new("auth.tokens", "", named_tokens(), |config| &mut config.auth.tokens).help(
            "Bearer tokens that callers may show, as `name:token` pairs; for the environment (`SABIR_AUTH_TOKENS`). They \
             allow `run` and `read`. In a file rather use `[[auth.token]]`, which holds hashes.",
        ),
        Row::new("auth.required", "false", switch(), |config| &mut config.auth.required)
            .help("Refuse to start when no credential is configured."),
        Row::new("auth.certificate_scopes", "run,read", list(scope()), |config| &mut config.auth.certificate_scopes).help(
            "What client certificates allow, where `server.tls_client_ca` names the authorities that sign them. Their \
             subject is the first `spiffe://` name in them, else the first URI.",
        ),
        Row::new("store.url", DATA_DIRECTORY, store_url(), |config| &mut config.store.url)
            .help(
                "Where tasks are kept: `sqlite:PATH`; `postgres://USER:PASSWORD@HOST/DATABASE`, which several servers \
                 can share; or `memory:` for trials (not durable: everything is lost when the server stops).",
            )
            .short_variable("SABIR_STORE")
            .flag("--store"),
        Row::new("store.folder", "", optional(folder()), |config| &mut config.store.folder).help(
            "With Postgres: the folder of this server for what belongs to its machine, such as worktrees, sessions of \
             coding programs and the file by which client commands find it. With SQLite they lie beside the database.",
        ),
        Row::new(
            "store.durability",
            "full",
            choice(&[("full", Durability::PowerCut), ("process", Durability::Process)]),
            |config| &mut config.store.durability,
        )
        .help(
            "What an acknowledged write survives: `full` a power cut, `process` a killed process only, which \
             is faster. Not for Postgres, whose own settings decide that.",
        ),
        Row::new("store.key", "", optional(store_key()), |config| &mut config.store.key).help(
            "Encrypts the secrets of webhooks in the store; `sabir key new` makes one. Rather in the environment than \
             in the file. Without it they are stored as they are.",
        ),
        Row::new("cluster.node_name", "", optional(node_name()), |config| &mut config.cluster.node_name).help(
            "With Postgres: the name of this server among those that share the database, which stays the same after a \
             restart. Several servers on one machine need different names. Without it the name of the machine.",
        ),
        Row::new("cluster.beat", "2s", interval(), |config| &mut config.cluster.beat)
            .help("How often this server tells the database that it is alive."),
        Row::new("cluster.grace", "6s", interval(), |config| &mut config.cluster.grace).help(
            "A server that has not renewed its lease for this long is declared dead, and the others take over its tasks. At least \
             three beats.",
        ),
        Row::new("cluster.home_timeout", "30s", duration(), |config| &mut config.cluster.home_timeout).help(
            "How long a task waits for the server where the session of its context lives, if that server is gone or no \
             longer has the agent. After that a `portable` agent continues elsewhere, and the task of any other fails.",
        ),
        Row::new("cluster.writers", "1", count(1..=4), |config| &mut config.cluster.writers).help(
            "Over how many connections this server writes. More help only where the way to the database is long or its \
             disk is slow.",
        ),
        Row::new("routing.complex", "", route(), |config| &mut config.routing.complex).help(
            "Who gets messages to the default agent that are hard: `{ agent = \"id\", model = \"name\" }`. In \
             the environment `id` or `id model`. Without it the default agent itself.",
        ),
        Row::new("routing.mid", "", route(), |config| &mut config.routing.mid)
            .help("Who gets those that are neither, in the same way."),
        Row::new("routing.routine", "", route(), |config| &mut config.routing.routine)
            .help("Who gets those that are easy, in the same way."),
        Row::new("card.name", "", optional(text()), |config| &mut config.card.name)
            .help("The server's name on its card. Without it a single agent's name is used."),
        Row::new("card.description", "", optional(text()), |config| &mut config.card.description)
            .help("What the card says about the server."),
        Row::new("card.organization", "", optional(text()), |config| &mut config.card.organization)
            .help("Who runs the server, as the card's provider. Without it `Sabir`."),
        Row::new("card.organization_url", "", optional(web_url()), |config| &mut config.card.organization_url)
            .help("The provider's web address. Without it the public address of the server."),
        Row::new("card.version", "", optional(text()), |config| &mut config.card.version)
            .help("The version on the card. Without it the version of this program."),
        Row::new("card.documentation_url", "", optional(web_url()), |config| &mut config.card.documentation_url)
            .help("A page for the people who write clients."),
        Row::new("card.icon_url", "", optional(web_url()), |config| &mut config.card.icon_url)
            .help("A picture for the card."),
        Row::new(
            "card.profile",
            "a2a",
            choice(&[("a2a", CardProfile::A2a), ("gateway", CardProfile::Gateway)]),
            |config| &mut config.card.profile,
        )
        .help(
            "Whose clients the card is for, where the request names no version: `a2a`, whose `url` takes \
             JSON-RPC, or `gateway`, whose `url` is the path of the gateway: `message:send` of a single agent, \
             or the list of agents.",
        ),
        Row::new("card.pure", "false", switch(), |config| &mut config.card.pure).help(
            "Keep the card to the keys of one protocol version. Otherwise it holds those of all versions, so \
             that every client finds its own.",
        ),
        Row::new("card.max_age", "30s", duration(), |config| &mut config.card.max_age)
            .help("How long clients may keep the card before they ask again."),
        Row::new("card.signing_key", "", optional(card_key()), |config| &mut config.card.signing_key).help(
            "Cards are signed with this private key, and clients verify them with `/.well-known/jwks.json`; `sabir key new \
             --card` makes one. PEM is fine too: P-256 (ES256) or Ed25519 (EdDSA), without a passphrase. Needs \
             `server.public_url` where the server listens on a wildcard address.",
        ),
        Row::new("compat.strict", "false", switch(), |config| &mut config.compat.strict)
            .help("Refuse sloppy requests (a missing messageId or role, old part spellings) on every mount."),
        Row::new(
            "compat.cancel_terminal",
            "auto",
            choice(&[("auto", CancelTerminal::Auto), ("error", CancelTerminal::Error), ("noop", CancelTerminal::Noop)]),
            |config| &mut config.compat.cancel_terminal,
        )
        .help(
            "The answer to a cancel of a finished task: `error`, `noop` (the task as it is), or `auto`, which \
             is what the caller's mount and spelling promise.",
        ),
        Row::new(
            "compat.terminal_message",
            "error",
            choice(&[("error", TerminalMessage::Error), ("new_task", TerminalMessage::NewTask)]),
            |config| &mut config.compat.terminal_message,
        )
        .help(
            "The answer to a message for a finished task: `error`, or `new_task` to start one in the same \
             context.",
        ),
        Row::new("limits.requests_per_second", "off", or_off(count(1..=1_000_000)), |config| {
            &mut config.limits.requests_per_second
        })
        .help(
            "How many requests a caller may make per second in the long run; further ones get 429 with `Retry-After`. \
             Callers without a credential are counted by their address (IPv6: by /64).",
        ),
        Row::new("limits.burst", "", optional(count(1..=1_000_000)), |config| &mut config.limits.burst)
            .help("How many requests a caller may make at once after a pause. Without it as many as in a second."),
        Row::new("limits.tasks_per_caller", "off", or_off(count(1..=1_000_000)), |config| {
            &mut config.limits.tasks_per_caller
        })
        .help(
            "How many tasks of a caller may be queued or work at the same time on one agent; further ones get 429. \
             Tasks that wait for the caller's answer do not count. Callers without a credential count as one.",
        ),
        Row::new("limits.open_streams", "off", or_off(count(1..=1_000_000)), |config| {
            &mut config.limits.open_streams
        })
        .help(
            "How many streams a caller may read at the same time; further ones get 429. Callers without a credential \
             are counted by their address.",
        ),
        Row::new("limits.stored_bytes", "off", or_off(size()), |config| &mut config.limits.stored_bytes).help(
            "How many bytes the tasks of a caller may take in the store: their logs and waiting messages, and 512 bytes \
             for each. At the limit, new tasks and follow-up messages get 429 until retention has deleted tasks; tasks \
             that run go on, and answers and cancels are accepted. Admins are limited like others. Callers without a \
             credential count as one.",
        ),
        Row::new("limits.message_bytes", "off", or_off(size()), |config| &mut config.limits.message_bytes)
            .help("The largest message to an agent: its text, data, files and metadata. A larger one is refused as invalid."),
        Row::new("limits.message_parts", "off", or_off(count(1..=65_536)), |config| {
            &mut config.limits.message_parts
        })
        .help("The most parts of a message. More than 65,536 are always refused."),
        Row::new("limits.connections_per_peer", "", optional(count(1..=u64::MAX)), |config| {
            &mut config.limits.connections_per_peer
        })
        .help(
            "How many connections one address may have open (for IPv6 a network of 64 bits); further ones are refused. \
             This machine is exempt, and so are trusted proxies: for those it is how many requests of one forwarded \
             address are answered at the same time. Without it a quarter of all connections, at least 64.",
        ),
        Row::new("send.max_wait", "off", limit(), |config| &mut config.send.max_wait)
            .help("The longest that a blocking send waits; then it answers with the task as it is. The task goes on."),
        Row::new("push.enabled", "true", switch(), |config| &mut config.push.enabled).help(
            "Whether callers may set webhooks (push notifications). With `false` the card says so, and all calls \
             about them are refused.",
        ),
        Row::new("push.allow_hosts", "", list(webhook_host()), |config| &mut config.push.allow_hosts).help(
            "Hosts that webhooks may lead to, whatever their addresses are: names or addresses, without scheme and \
             port. All others need public addresses.",
        ),
        Row::new("push.allow_cidrs", "", list(webhook_range()), |config| &mut config.push.allow_cidrs)
            .help("Ranges of addresses that webhooks may lead to although they are not public, such as `10.0.0.0/8`."),
        Row::new("push.ports", "any", webhook_ports(), |config| &mut config.push.ports).help(
            "Ports that webhooks may lead to: `any`; `safe`, which leaves out those where another protocol than HTTP \
             listens, as browsers do; or a list such as `[443, 8443]`.",
        ),
        Row::new("push.timeout", "15s", interval(), |config| &mut config.push.timeout)
            .help("How long one delivery may take, from the look-up of the name to the answer."),
        Row::new("push.give_up_after", "24h", interval(), |config| &mut config.push.give_up_after)
            .help("An event that cannot be delivered for so long is not tried any more; `sabir push list` shows it."),
        Row::new("push.per_receiver", "64", count(1..=1000), |config| &mut config.push.per_receiver)
            .help("Deliveries at the same time to one receiver: scheme, host and port."),
        Row::new("push.hmac_secret", "", optional(hmac_secret()), |config| &mut config.push.hmac_secret).help(
            "Deliveries are signed with this shared secret, as Standard Webhooks have it (`webhook-signature`). After \
             `whsec_` it is base64.",
        ),
        Row::new("push.signing_key", "", optional(signing_key()), |config| &mut config.push.signing_key).help(
            "Deliveries are signed with this key (`sabir-signature`), and receivers verify them with \
             `/.well-known/jwks.json`; `sabir key new --signing` makes one.",
        ),
        Row::new(
            "recovery.running",
            "fail",
            choice(&[("fail", Recovery::Fail), ("requeue", Recovery::Requeue)]),
            |config| &mut config.recovery.running,
        )
        .help("What becomes of tasks that were running when the server stopped: `fail` or `requeue`."),
        Row::new("retention.max_age", "off", limit(), |config| &mut config.retention.max_age)
            .help("Settled tasks older than this are deleted."),
        Row::new("retention.max_tasks", "off", or_off(count(1..=u64::MAX)), |config| &mut config.retention.max_tasks)
            .help("When more tasks than this are stored, the oldest settled ones are deleted."),
        Row::new("retention.waiting", "off", limit(), |config| &mut config.retention.waiting)
            .help("Tasks that have waited for an answer for longer than this fail."),
        Row::new("audit.enabled", "auto", switch_or_auto(), |config| &mut config.audit.enabled).help(
            "Whether the server records who did what to which task (`sabir audit`): `true`, `false`, or `auto`, which \
             is `true` where callers have credentials.",
        ),
        Row::new("audit.keep", "90d", limit(), |config| &mut config.audit.keep.max_age)
            .help("Entries of the audit log that are older than this are deleted."),
        Row::new("audit.max_entries", "1000000", or_off(count(1..=u64::MAX)), |config| {
            &mut config.audit.keep.max_entries
        })
        .help("When the audit log has more entries than this, the oldest are deleted."),
        Row::new("console.enabled", "true", switch(), |config| &mut config.console.enabled)
            .help("Whether the server has pages for people at `/console`."),
        Row::new("mcp.enabled", "true", switch(), |config| &mut config.mcp.enabled)
            .help("Whether programs that speak MCP find the agents as tools at `/mcp`."),
        Row::new("mcp.wait", "50s", duration(), |config| &mut config.mcp.wait).help(
            "The longest wait of an MCP call for its agent. After it the call returns the task's id, and the agent goes on. \
             Keep it below the time that hosts allow a tool, which is often 60 s.",
        ),
        Row::new("openai.enabled", "true", switch(), |config| &mut config.openai.enabled).help(
            "Whether programs that speak OpenAI's chat completions find the agents as models at `/v1/models` and \
             `/v1/chat/completions`.",
        ),
        Row::new("delegation.max_depth", "3", count(0..=100), |config| &mut config.delegation.max_depth).help(
            "How many delegations may lie between a task and the one that a caller has made, where programs ask other agents \
             (`delegate`).",
        ),
        Row::new("delegation.max_children", "16", count(0..=10_000), |config| &mut config.delegation.max_children)
            .help("How many tasks a program may delegate in one turn."),
        Row::new("metrics.enabled", "true", switch(), |config| &mut config.metrics.enabled).help(
            "Whether the server keeps figures for Prometheus and shows them at `/metrics`, to whoever may make admin calls \
             and to the scope `metrics`. With `false` there is no such path.",
        ),
        Row::new("metrics.listen", "", listen_addresses(), |config| &mut config.metrics.listen).help(
            "Further addresses, one or several, that serve `/metrics`, `/healthz` and `/readyz` and nothing else, over HTTP \
             and without a credential: for scrapers on other machines. A port alone means loopback.",
        ),
        Row::new("log.level", "info", log_filter(), |config| &mut config.log.level)
            .help(
                "What is logged: `off`, `error`, `warn`, `info`, `debug` or `trace`, also per module: \
                 `info,sabir=debug`.",
            )
            .flag("--log-level"),
        Row::new("log.format", "text", choice(&[("text", LogFormat::Text), ("json", LogFormat::Json)]), |config| {
            &mut config.log.format
        })
        .help("How log lines look: `text` or `json`.")
        .flag("--log-format"),
    ]
});

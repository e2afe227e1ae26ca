//! What a Postgres store needs to know, and the connection string.
//!
//! The driver parses the string, but knows only some values of `sslmode` and no `sslrootcert`, so these two are taken out first.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use super::tls::{Check, Tls};

#[derive(Clone)]
pub struct PostgresSettings {
    /// `postgres://user:password@host:port/database?sslmode=verify-full`, or `host=/run/postgresql dbname=sabir`.
    pub url: String,
    /// The name of this node. It should be the same after a restart on the same machine.
    pub node_name: Arc<str>,
    /// The version of this server, which other nodes show.
    pub version: String,
    /// How often the node renews its lease.
    pub beat: Duration,
    /// How long the node may miss its beats before others take its tasks.
    pub grace: Duration,
    /// How long a task waits for the node that has its sessions, before another node takes it.
    pub home_timeout: Duration,
    /// How long to wait at the start for a database that cannot be reached, since both may start at the same time.
    pub start_timeout: Duration,
    /// Connections that append, 1 to 4.
    pub writers: usize,
}

impl PostgresSettings {
    pub fn new(url: impl Into<String>, node_name: impl Into<Arc<str>>, version: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            node_name: node_name.into(),
            version: version.into(),
            beat: Duration::from_secs(2),
            grace: Duration::from_secs(6),
            home_timeout: Duration::from_secs(30),
            start_timeout: Duration::ZERO,
            writers: 1,
        }
    }
}

/// Where to connect, and how.
pub(super) struct Target {
    pub config: Config,
    pub tls: Tls,
}

/// Without an answer for so long, a connection is taken for lost.
const SILENCE: Duration = Duration::from_secs(10);

impl Target {
    /// The error is a sentence without the password.
    pub fn parse(url: &str) -> Result<Self, String> {
        let Split { rest, ssl_mode, root_file } = split(url)?;
        let mut config: Config = rest.parse().map_err(|error: tokio_postgres::Error| {
            let reason = std::error::Error::source(&error).map(ToString::to_string);
            reason.unwrap_or_else(|| error.to_string())
        })?;
        let (mode, check) = match ssl_mode.as_deref() {
            Some("disable") => (SslMode::Disable, Check::Nothing),
            None | Some("prefer" | "allow") => (SslMode::Prefer, Check::Nothing),
            // As libpq: whoever names roots wants them to be checked.
            Some("require") if root_file.is_some() => (SslMode::Require, Check::Root),
            Some("require") => (SslMode::Require, Check::Nothing),
            Some("verify-ca") => (SslMode::Require, Check::Root),
            Some("verify-full") => (SslMode::Require, Check::RootAndName),
            Some(_) => {
                return Err("sslmode is one of disable, prefer, require, verify-ca and verify-full".to_owned());
            }
        };
        // There is no TLS on Unix sockets, whatever the mode.
        let is_local = config.get_hosts().iter().all(|host| matches!(host, Host::Unix(_)));
        let is_local = is_local && config.get_hostaddrs().is_empty();
        config.ssl_mode(if is_local { SslMode::Disable } else { mode });
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err("it names no host".to_owned());
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(Duration::from_secs(5));
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(SILENCE);
        }
        if config.get_application_name().is_none() {
            config.application_name("sabir");
        }
        config.keepalives_idle(SILENCE).keepalives_interval(Duration::from_secs(3)).keepalives_retries(3);
        let check = if is_local { Check::Nothing } else { check };
        Ok(Self { config, tls: Tls::new(check, root_file.as_deref())? })
    }

    /// One configuration for each host. Given all of them, the driver never tries the second if the first accepts
    /// connections and says nothing.
    pub fn hosts(&self) -> Vec<Config> {
        let all = &self.config;
        let (hosts, addresses, ports) = (all.get_hosts().len(), all.get_hostaddrs().len(), all.get_ports().len());
        let count = hosts.max(addresses);
        let is_clear = (hosts == addresses || hosts == 0 || addresses == 0) && (ports <= 1 || ports == count);
        if count <= 1 || !is_clear {
            // The driver says what is not clear.
            return vec![all.clone()];
        }
        (0..count).map(|place| of_host(all, place)).collect()
    }

    /// The server and the database, without user and password.
    pub fn shown(&self) -> String {
        let mut hosts: Vec<String> = self.config.get_hosts().iter().map(shown_host).collect();
        if hosts.is_empty() {
            hosts = self.config.get_hostaddrs().iter().map(ToString::to_string).collect();
        }
        let is_usual = self.config.get_ports().iter().all(|port| *port == 5432);
        let ports = self.config.get_ports().iter().filter(|_| !is_usual);
        let ports: Vec<String> = ports.map(|port| format!(":{port}")).collect();
        let database = self.config.get_dbname().or(self.config.get_user()).unwrap_or_default();
        format!("{}{}/{database}", hosts.join(","), ports.join(","))
    }
}

/// The driver's configuration has no way to remove hosts, so everything else is copied.
fn of_host(all: &Config, place: usize) -> Config {
    let mut one = Config::new();
    match all.get_hosts().get(place) {
        Some(Host::Tcp(name)) => {
            one.host(name);
        }
        Some(Host::Unix(folder)) => {
            one.host_path(folder);
        }
        None => {}
    }
    if let Some(address) = all.get_hostaddrs().get(place) {
        one.hostaddr(*address);
    }
    if let Some(port) = all.get_ports().get(place).or(all.get_ports().first()) {
        one.port(*port);
    }
    if let Some(user) = all.get_user() {
        one.user(user);
    }
    if let Some(password) = all.get_password() {
        one.password(password);
    }
    if let Some(database) = all.get_dbname() {
        one.dbname(database);
    }
    if let Some(options) = all.get_options() {
        one.options(options);
    }
    if let Some(name) = all.get_application_name() {
        one.application_name(name);
    }
    if let Some(limit) = all.get_connect_timeout() {
        one.connect_timeout(*limit);
    }
    if let Some(limit) = all.get_tcp_user_timeout() {
        one.tcp_user_timeout(*limit);
    }
    if let Some(interval) = all.get_keepalives_interval() {
        one.keepalives_interval(interval);
    }
    if let Some(retries) = all.get_keepalives_retries() {
        one.keepalives_retries(retries);
    }
    one.keepalives(all.get_keepalives())
        .keepalives_idle(all.get_keepalives_idle())
        .ssl_mode(all.get_ssl_mode())
        .ssl_negotiation(all.get_ssl_negotiation())
        .target_session_attrs(all.get_target_session_attrs())
        .channel_binding(all.get_channel_binding())
        .load_balance_hosts(all.get_load_balance_hosts());
    one
}

fn shown_host(host: &Host) -> String {
    match host {
        Host::Tcp(name) => name.clone(),
        Host::Unix(folder) => folder.display().to_string(),
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Split {
    rest: String,
    ssl_mode: Option<String>,
    root_file: Option<PathBuf>,
}

impl Split {
    /// Whether the parameter is one of the two.
    fn take(&mut self, name: &str, value: &str) -> bool {
        match name {
            "sslmode" => self.ssl_mode = Some(value.to_owned()),
            "sslrootcert" if value == "system" => {}
            "sslrootcert" => self.root_file = Some(value.into()),
            _ => return false,
        }
        true
    }
}

/// Takes `sslmode` and `sslrootcert` out of a connection string.
fn split(url: &str) -> Result<Split, String> {
    let is_url = url.starts_with("postgres://") || url.starts_with("postgresql://");
    if is_url { split_url(url) } else { split_pairs(url) }
}

fn split_url(url: &str) -> Result<Split, String> {
    let Some((base, query)) = url.split_once('?') else {
        return Ok(Split { rest: url.to_owned(), ..Split::default() });
    };
    let mut split = Split::default();
    let mut others = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        if !split.take(name, &percent_decoded(value)?) {
            others.push(pair);
        }
    }
    split.rest = if others.is_empty() { base.to_owned() } else { format!("{base}?{}", others.join("&")) };
    Ok(split)
}

fn percent_decoded(text: &str) -> Result<String, String> {
    let malformed = || "it has a malformed percent sign".to_owned();
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        rest = more;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = rest.get(..2).and_then(|digits| str::from_utf8(digits).ok()).ok_or_else(malformed)?;
        bytes.push(u8::from_str_radix(digits, 16).map_err(|_| malformed())?);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).map_err(|_| malformed())
}

/// Pairs `name = value`; a value may have single quotes around it, and backslashes before quotes and backslashes.
fn split_pairs(text: &str) -> Result<Split, String> {
    let mut split = Split::default();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let start = rest;
        let (name, after) = rest.split_once('=').ok_or("it is neither a URL nor pairs like host=... dbname=...")?;
        let after = after.trim_start();
        let is_quoted = after.starts_with('\'');
        let mut value = String::new();
        let mut end = after.len();
        let mut is_escaped = false;
        for (place, character) in after.char_indices().skip(usize::from(is_quoted)) {
            match character {
                _ if is_escaped => {
                    value.push(character);
                    is_escaped = false;
                }
                '\\' => is_escaped = true,
                '\'' if is_quoted => {
                    end = place + 1;
                    break;
                }
                space if space.is_whitespace() && !is_quoted => {
                    end = place;
                    break;
                }
                _ => value.push(character),
            }
        }
        rest = &after[end..];
        if !split.take(name.trim(), &value) {
            if !split.rest.is_empty() {
                split.rest.push(' ');
            }
            split.rest.push_str(start[..start.len() - rest.len()].trim());
        }
        rest = rest.trim_start();
    }
    Ok(split)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tls_parameters_are_taken_out() {
        for (url, rest, mode, file) in [
            ("postgres://u:p@h/db", "postgres://u:p@h/db", None, None),
            ("postgres://u:p@h/db?sslmode=verify-full", "postgres://u:p@h/db", Some("verify-full"), None),
            (
                "postgresql://h/db?connect_timeout=3&sslrootcert=%2Fa%20b.pem&sslmode=require&options=x",
                "postgresql://h/db?connect_timeout=3&options=x",
                Some("require"),
                Some("/a b.pem"),
            ),
            ("host=/run dbname=db", "host=/run dbname=db", None, None),
            ("host = h sslmode = disable password='a\\' b=c'", "host = h password='a\\' b=c'", Some("disable"), None),
            ("sslrootcert='/a b' host=h", "host=h", None, Some("/a b")),
        ] {
            let expected = Split { rest: rest.into(), ssl_mode: mode.map(Into::into), root_file: file.map(Into::into) };
            assert_eq!(split(url), Ok(expected), "{url}");
        }
    }

    #[test]
    fn each_host_has_all_that_the_string_says() {
        let options = "connect_timeout=3&keepalives=0&target_session_attrs=read-write&channel_binding=disable\
            &options=-c%20x%3D1&application_name=n&tcp_user_timeout=4&load_balance_hosts=random&sslmode=disable";
        let parse = |hosts: &str| Target::parse(&format!("postgres://u:p@{hosts}/db?{options}")).unwrap();
        for (hosts, each) in [
            ("a", &["a"][..]),
            ("a:1,b:2", &["a:1", "b:2"]),
            ("a,b", &["a:5432", "b:5432"]),
            ("%2Frun%2Fpg:1,b:2", &["%2Frun%2Fpg:1", "b:2"]),
        ] {
            let expected: Vec<Config> = each.iter().map(|host| parse(host).config).collect();
            assert_eq!(parse(hosts).hosts(), expected, "{hosts}");
        }
        let unclear = Target::parse("host=a,b,c port=1,2 user=u").unwrap();
        assert_eq!(unclear.hosts().len(), 1);
    }

    #[test]
    fn what_a_connection_string_says() {
        for (url, expected) in [
            ("postgres://u:geheim@h:5433/db", "h:5433/db Prefer"),
            ("postgres://u@h/db?sslmode=require", "h/db Require"),
            ("postgres://%2Frun%2Fpg/db?sslmode=verify-full", "/run/pg/db Disable"),
            ("host=/run/pg user=u", "/run/pg/u Disable"),
            ("postgres://u:geheim@h/db?sslmode=maybe", "sslmode is one of"),
            ("postgres://u:geheim@h/db?geheim2=1", "unknown option `geheim2`"),
            ("postgres://u:geheim@h/db?sslmode=require&sslrootcert=/nowhere.pem", "sslrootcert /nowhere.pem: "),
            ("postgres://u:geheim@h/db?sslmode=%zz", "it has a malformed percent sign"),
            ("dbname=db", "it names no host"),
            ("sabir.db", "it is neither a URL"),
        ] {
            let outcome = match Target::parse(url) {
                Ok(target) => format!("{} {:?}", target.shown(), target.config.get_ssl_mode()),
                Err(reason) => reason,
            };
            assert!(outcome.starts_with(expected) && !outcome.contains("geheim@"), "{url}: {outcome}");
        }
    }
}

//! What `serve` checks before it starts: that it is not open to other machines by accident, that its TLS files can be used,
//! and that this machine has the programs, folders, repositories and credentials that the agents need.
//!
//! `sabir config` shows a configuration that fails these checks; `serve` asks here first. The one line of each problem
//! says what is missing, which setting wants it, and what to do.

use std::ffi::OsStr;
use std::fmt::Display;
use std::net::SocketAddr;
use std::path::Path;

use sabir_agents::program::settings::{Isolation, Kind};
use sabir_server::{ClientAuth, ClientCertificates, Tls, TlsFile, TlsSettings};

use crate::machine::Machine;
use crate::upstream::{self, UnusableSetting};

use super::layers::LoadedConfig;
use super::origin::{Problem, Problems, ValueOrigin};
use super::sections::{AgentConfig, AgentKind, Config, ProgramConfig, ServerSection, StoreUrl};

impl LoadedConfig {
    /// Refuses to serve other machines by accident.
    pub fn check_exposure(&self) -> Result<(), Problems> {
        if self.config.auth.required && !self.config.asks_for_credentials() {
            let words = "is true, but there is no credential; make one with `sabir token new`";
            return Err(Problems(vec![Problem::of(self.origin("auth.required"), "auth.required", words).text]));
        }
        if !self.config.metrics.enabled && !self.config.metrics.listen.is_empty() {
            let words = "is set, but metrics.enabled is false; leave one of them out";
            return Err(Problems(vec![Problem::of(self.origin("metrics.listen"), "metrics.listen", words).text]));
        }
        match exposed(&self.config) {
            Some(address) => Err(Problems(vec![refusal(address, self.origin("server.listen"))])),
            None => Ok(()),
        }
    }

    /// Refuses TLS settings that do not belong together, and files that cannot be used.
    pub fn check_tls(&self) -> Result<(), Problems> {
        let problem = |(key, words): (&str, String)| Problem::of(self.origin(key), key, &words);
        let server = &self.config.server;
        Problems::check(incomplete_tls(server).into_iter().map(problem).collect())?;
        match tls_settings(server).map(Tls::load) {
            Some(Err(error)) => Problems::check(vec![problem((setting_of(error.file), error.to_string()))]),
            Some(Ok(_)) | None => Ok(()),
        }
    }

    /// Refuses settings of the store that do not belong together.
    pub fn check_store(&self) -> Result<(), Problems> {
        let is_set = |key: &str| *self.origin(key) != ValueOrigin::Default;
        let problem = |(key, words): (&str, String)| Problem::of(self.origin(key), key, &words);
        Problems::check(unfit_store(&self.config, is_set).into_iter().map(problem).collect())
    }

    /// Refuses agents whose programs, folders, repositories or credentials are not on this machine.
    pub fn check_requirements(&self, machine: &Machine) -> Result<(), Problems> {
        Problems::check(self.config.all_agents().flat_map(|agent| self.missing(agent, machine)).collect())
    }

    /// The first thing that this agent needs and that is not here, with the remedy.
    pub fn first_missing(&self, agent: &AgentConfig, machine: &Machine) -> Option<String> {
        self.missing(agent, machine).into_iter().next().map(|problem| problem.text)
    }

    fn missing(&self, agent: &AgentConfig, machine: &Machine) -> Vec<Problem> {
        let problem = |Missing { key, words }: Missing| {
            Problem::of(self.origin(&format!("agent.{}.{key}", agent.id)), key, &words)
        };
        let missing = match agent.kind {
            AgentKind::Program(kind) => missing(agent, kind, machine),
            AgentKind::A2a => upstream::check(&agent.remote, machine).err().into_iter().map(Missing::from).collect(),
            AgentKind::OpenAi => upstream::check_openai(agent, machine).into_iter().map(Missing::from).collect(),
            AgentKind::Demo | AgentKind::Conformance => Vec::new(),
        };
        missing.into_iter().map(problem).collect()
    }

    fn origin(&self, key: &str) -> &ValueOrigin {
        let value = self.values.iter().find(|value| value.key == key);
        &value.expect("every setting has a value").origin
    }
}

/// The first address that needs `allow_open` and does not have it: where nothing asks callers for credentials, a listener
/// that other machines can reach lets everybody in.
pub fn exposed(config: &Config) -> Option<SocketAddr> {
    if config.server.allow_open || config.asks_for_credentials() {
        return None;
    }
    config.server.listen.iter().copied().find(|address| !address.ip().to_canonical().is_loopback())
}

/// The files that the settings name; `None`: no certificate of the operator's is used.
pub fn tls_settings(server: &ServerSection) -> Option<TlsSettings> {
    let (certificate, key) = (server.tls_cert.clone()?, server.tls_key.clone()?);
    Some(TlsSettings { certificate, key, clients: client_certificates(server) })
}

pub fn client_certificates(server: &ServerSection) -> Option<ClientCertificates> {
    let authorities = server.tls_client_ca.clone()?;
    Some(ClientCertificates { authorities, auth: server.tls_client_auth })
}

/// Settings that lack another one, and what to do about it.
fn incomplete_tls(server: &ServerSection) -> Vec<(&'static str, String)> {
    let has_certificate = server.dev_tls || (server.tls_cert.is_some() && server.tls_key.is_some());
    let mut problems = Vec::new();
    let mut add = |key, words: &str| problems.push((key, words.to_owned()));
    match (&server.tls_cert, &server.tls_key) {
        (Some(_), None) => add("server.tls_cert", "is set without server.tls_key; name both files, or neither"),
        (None, Some(_)) => add("server.tls_key", "is set without server.tls_cert; name both files, or neither"),
        _ => {}
    }
    if server.dev_tls && (server.tls_cert.is_some() || server.tls_key.is_some()) {
        add("server.dev_tls", "is set beside server.tls_cert or server.tls_key; leave one of them out");
    }
    if server.tls_client_ca.is_some() && !has_certificate {
        add(
            "server.tls_client_ca",
            "asks for certificates of clients, which needs HTTPS; set server.tls_cert and server.tls_key, or --dev-tls",
        );
    }
    if server.tls_client_auth == ClientAuth::Required && server.tls_client_ca.is_none() {
        add("server.tls_client_auth", "is \"required\" without server.tls_client_ca; name the authorities");
    }
    problems
}

/// Settings that do not fit the store, and what to do about it. `is_set`: somebody has set it.
fn unfit_store(Config { store, cluster, .. }: &Config, is_set: impl Fn(&str) -> bool) -> Vec<(&'static str, String)> {
    let mut problems = Vec::new();
    match &store.url {
        StoreUrl::Postgres(_) => {
            if is_set("store.durability") {
                let words = "is for SQLite, and store.url names a Postgres, whose synchronous_commit decides what an \
                             acknowledged write survives; leave store.durability out";
                problems.push(("store.durability", words.to_owned()));
            }
            if cluster.grace < 3 * cluster.beat {
                let words = format!(
                    "is {:?}, which is less than three beats of {:?}; a server that misses one would lose its tasks: \
                     raise cluster.grace, or lower cluster.beat",
                    cluster.grace, cluster.beat
                );
                problems.push(("cluster.grace", words));
            }
        }
        StoreUrl::Sqlite(_) | StoreUrl::Memory if is_set("store.folder") => {
            let words = "is for Postgres, and store.url names none: such files lie beside an SQLite database; leave \
                         store.folder out";
            problems.push(("store.folder", words.to_owned()));
        }
        StoreUrl::Sqlite(_) | StoreUrl::Memory => {}
    }
    problems
}

/// The setting that names this file.
fn setting_of(file: TlsFile) -> &'static str {
    match file {
        TlsFile::Certificate => "server.tls_cert",
        TlsFile::Key => "server.tls_key",
        TlsFile::Authorities => "server.tls_client_ca",
    }
}

/// Whether all callers are people at this machine, who without credentials are the ones who started the server. An address or
/// a name for others says otherwise: a proxy stands behind it. So do pages of every origin that may call.
pub fn is_private(config: &Config) -> bool {
    // All sections are named, so that whoever adds one decides here what it says of the callers.
    let Config {
        server,
        auth,
        store: _,
        cluster: _,
        agents: _,
        routed_agents: _,
        routing: _,
        card: _,
        compat: _,
        limits: _,
        send: _,
        push: _,
        recovery: _,
        retention: _,
        audit: _,
        console: _,
        mcp: _,
        openai: _,
        delegation: _,
        metrics: _,
        log: _,
    } = config;
    let is_loopback = |address: &SocketAddr| address.ip().to_canonical().is_loopback();
    !auth.has_headers()
        && server.public_url.is_none()
        && server.listen.iter().all(is_loopback)
        && server.allowed_hosts.is_empty()
        && server.tls_client_ca.is_none()
        && server.trusted_proxies.is_empty()
        && !server.cors_origins.iter().any(|origin| origin == "*")
}

/// `address` is what `exposed` found; `origin` where it was asked for.
pub fn refusal(address: SocketAddr, origin: &impl Display) -> String {
    format!(
        "{origin}: other machines can reach {address}, and nothing asks callers for credentials; \
         make a token with `sabir token new`, listen on 127.0.0.1, or allow it with --allow-open or server.allow_open"
    )
}

/// Credentials that anybody between client and server can read. `asks_for_credentials`: some are configured.
pub fn readable_credentials(server: &ServerSection, asks_for_credentials: bool) -> Option<String> {
    let is_loopback = |address: &SocketAddr| address.ip().to_canonical().is_loopback();
    let exposed = server.listen.iter().find(|address| !is_loopback(address))?;
    let is_encrypted = server.scheme() == "https"
        || server.public_url.as_deref().is_some_and(|url| url.starts_with("https://"))
        || !server.trusted_proxies.is_empty();
    (asks_for_credentials && !is_encrypted).then(|| {
        format!(
            "credentials are sent to {exposed} without encryption; set server.tls_cert and server.tls_key, or \
             server.public_url or server.trusted_proxies if a proxy speaks HTTPS in front"
        )
    })
}

/// The same ports on loopback.
pub fn only_loopback(listen: &[SocketAddr]) -> Vec<String> {
    let inside = |address: &SocketAddr| match address {
        SocketAddr::V4(address) => format!("127.0.0.1:{}", address.port()),
        SocketAddr::V6(address) => format!("[::1]:{}", address.port()),
    };
    listen.iter().map(inside).collect()
}

/// What else the reader of the start-up lines should know about the addresses.
pub fn advice(server: &ServerSection) -> Option<String> {
    let first = server.listen.first()?;
    let unclear = first.ip().is_unspecified() && server.public_url.is_none();
    unclear.then(|| {
        format!(
            "{first} has no host that clients could use, so the card repeats the Host of each request; \
             server.public_url says what it should be"
        )
    })
}

/// Agents whose questions for permission nobody can answer, since nobody has a credential with their scope.
pub fn unanswerable(config: &Config) -> Vec<String> {
    if config.asks_for_credentials() {
        return Vec::new();
    }
    let warning = |(agent, scope): (&AgentConfig, &String)| {
        format!(
            "nobody can give the approvals that agent {} asks for: its approver is {scope:?}, and callers have no \
             credentials; make one with `sabir token new NAME --scope {scope}`",
            agent.id
        )
    };
    let named = config.all_agents().filter_map(|agent| agent.approver.as_ref().map(|scope| (agent, scope)));
    named.map(warning).collect()
}

/// Something that is not there. The words follow the name of the setting that wants it.
struct Missing {
    key: &'static str,
    words: String,
}

impl From<UnusableSetting> for Missing {
    fn from(UnusableSetting { key, words }: UnusableSetting) -> Self {
        Missing { key, words }
    }
}

fn missing(agent: &AgentConfig, kind: Kind, machine: &Machine) -> Vec<Missing> {
    let program = &agent.program;
    let mut missing: Vec<Missing> = missing_program(program, kind, machine).into_iter().collect();
    let folders = std::iter::once(("workspace", &program.workspace));
    for (key, folder) in folders.chain(program.workspace_roots.iter().map(|root| ("workspace_roots", root))) {
        if !machine.absolute(folder).is_dir() {
            let words = format!("names {}, which is no folder; make it, or name another", folder.display());
            missing.push(Missing { key, words });
        }
    }
    if program.isolation == Isolation::Worktree {
        let words = missing_repository(&program.workspace, machine);
        missing.extend(words.map(|words| Missing { key: "isolation", words }));
    }
    missing
}

/// Why its program cannot be run.
fn missing_program(program: &ProgramConfig, kind: Kind, machine: &Machine) -> Option<Missing> {
    let known = kind.info();
    let own = known.mode_info(program.mode)?.program;
    let name = program.command.first().map(String::as_str).or(own)?;
    let absent = machine.find_on(path_of(program, machine), name).err()?;
    Some(match program.command.is_empty() {
        true => {
            let words = format!(
                "is \"{}\", whose program {name} {absent}; install it ({}), \
                 or say where it is with command = [\"/path/to/{name}\"] in its [[agent]]",
                known.name, known.install
            );
            Missing { key: "kind", words }
        }
        false => {
            let words = format!("names {name}, which {absent}; install it, or write its whole path");
            Missing { key: "command", words }
        }
    })
}

/// The `PATH` that the program itself will see.
fn path_of<'a>(program: &'a ProgramConfig, machine: &'a Machine) -> &'a OsStr {
    let own = program.environment.iter().find(|(name, _)| name == "PATH");
    own.map_or(machine.path.as_os_str(), |(_, path)| OsStr::new(path))
}

fn missing_repository(workspace: &Path, machine: &Machine) -> Option<String> {
    if !machine.is_in_repository(workspace) {
        let shown = machine.absolute(workspace);
        let words = format!("is \"worktree\", but {} is not in a git repository", shown.display());
        return Some(format!("{words}; run git init there, or use isolation = \"none\""));
    }
    let absent = machine.find("git").err()?;
    Some(format!("is \"worktree\", which needs the program git; it {absent}"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::postgres_url::PostgresUrl;
    use super::super::sections::{AuthSection, CredentialConfig};
    use super::*;

    #[test]
    fn settings_of_tls_belong_together() {
        const CERT: u8 = 1;
        const KEY: u8 = 2;
        const CA: u8 = 4;
        const REQUIRED: u8 = 8;
        const DEV: u8 = 16;
        for (set, expected) in [
            (0, &[][..]),
            (CERT | KEY, &[]),
            (CERT | KEY | CA | REQUIRED, &[]),
            (DEV, &[]),
            (DEV | CA | REQUIRED, &[]),
            (CERT, &["server.tls_cert"]),
            (KEY, &["server.tls_key"]),
            (CERT | CA, &["server.tls_cert", "server.tls_client_ca"]),
            (CA, &["server.tls_client_ca"]),
            (REQUIRED, &["server.tls_client_auth"]),
            (CERT | KEY | REQUIRED, &["server.tls_client_auth"]),
            (CERT | KEY | DEV, &["server.dev_tls"]),
        ] {
            let file = |bit| (set & bit != 0).then(|| "file.pem".into());
            let server = ServerSection {
                tls_cert: file(CERT),
                tls_key: file(KEY),
                tls_client_ca: file(CA),
                tls_client_auth: if set & REQUIRED != 0 { ClientAuth::Required } else { ClientAuth::Optional },
                dev_tls: set & DEV != 0,
                ..ServerSection::default()
            };
            let keys: Vec<&str> = incomplete_tls(&server).into_iter().map(|(key, _)| key).collect();
            assert_eq!(keys, expected, "{set:b}");
        }
    }

    #[test]
    fn settings_of_the_store_belong_together() {
        let postgres = || StoreUrl::Postgres(PostgresUrl::parse("postgres://me:secret@db/sabir").unwrap());
        let sqlite = || StoreUrl::Sqlite("sabir.db".into());
        for (url, set, beat, grace, expected) in [
            (postgres(), &[][..], 2, 6, &[][..]),
            (postgres(), &["store.folder"], 2, 7, &[]),
            (postgres(), &[], 2, 5, &["cluster.grace"]),
            (postgres(), &["store.durability"], 2, 6, &["store.durability"]),
            (sqlite(), &["store.durability"], 2, 1, &[]),
            (sqlite(), &["store.folder"], 2, 6, &["store.folder"]),
            (StoreUrl::Memory, &["store.folder"], 2, 6, &["store.folder"]),
        ] {
            let mut config = Config::default();
            config.store.url = url;
            (config.cluster.beat, config.cluster.grace) = (Duration::from_secs(beat), Duration::from_secs(grace));
            let problems = unfit_store(&config, |key| set.contains(&key));
            let keys: Vec<&str> = problems.iter().map(|(key, _)| *key).collect();
            assert_eq!(keys, expected, "{:?} {set:?}", config.store.url);
            assert!(problems.iter().all(|(_, words)| !words.contains("secret")), "{problems:?}");
        }
    }

    #[test]
    fn credentials_without_encryption_are_warned_of() {
        let range = sabir_server::AddressRange::parse("10.0.0.1").unwrap();
        for (address, asks, change, is_warned) in [
            ("0.0.0.0:80", true, (|_| {}) as fn(&mut ServerSection), true),
            ("0.0.0.0:80", false, |_| {}, false),
            ("127.0.0.1:80", true, |_| {}, false),
            ("[::1]:80", true, |_| {}, false),
            ("0.0.0.0:80", true, |server| server.public_url = Some("https://a.example".into()), false),
            ("0.0.0.0:80", true, |server| server.public_url = Some("http://a.example".into()), true),
            ("0.0.0.0:80", true, |server| server.tls_cert = Some("cert.pem".into()), false),
            ("0.0.0.0:80", true, |server| server.dev_tls = true, false),
        ] {
            let mut server = ServerSection { listen: vec![address.parse().unwrap()], ..ServerSection::default() };
            change(&mut server);
            assert_eq!(readable_credentials(&server, asks).is_some(), is_warned, "{server:?}");
            server.trusted_proxies = vec![range];
            assert_eq!(readable_credentials(&server, asks), None);
        }
    }

    #[test]
    fn only_loopback_needs_no_allow_open() {
        for (address, expected) in [
            ("127.0.0.1:1", None),
            ("127.9.9.9:1", None),
            ("[::1]:1", None),
            ("[::ffff:127.0.0.1]:1", None),
            ("0.0.0.0:1", Some("0.0.0.0:1")),
            ("[::]:1", Some("[::]:1")),
            ("192.168.0.2:1", Some("192.168.0.2:1")),
        ] {
            let server = ServerSection { listen: vec![address.parse().unwrap()], ..ServerSection::default() };
            let config = Config { server, ..Config::default() };
            assert_eq!(exposed(&config).map(|address| address.to_string()).as_deref(), expected);
            let auth = AuthSection { token: vec![CredentialConfig::default()], ..AuthSection::default() };
            assert_eq!(exposed(&Config { auth, ..config.clone() }), None, "callers have credentials");
            let open = ServerSection { allow_open: true, ..config.server };
            assert_eq!(exposed(&Config { server: open, ..Config::default() }), None);
        }
    }
}

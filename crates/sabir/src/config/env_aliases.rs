//! Environment names of other A2A servers, as aliases of our settings, so that a deployment can move here as it is.
//!
//! They are weaker than `SABIR_` names and do not stop a start: people have `PORT` and `LOG_LEVEL` set for other
//! programs. A value that cannot be used is a warning, and so is a name whose feature does not exist yet, since
//! silence would look as if it worked. Only a word that chooses what runs (`AGENT_ADAPTER`, `AGENT_ARGS`, an adapter of
//! `ROUTING__`) stops the start when it makes no sense, since something else would run instead, and so do an allow-list
//! of webhooks (`PUSH_NOTIFICATION_`) and credentials (`A2A_AUTH_`, `AUTH_`): their server promised them.

use sabir_agents::program::settings::Kind;

use super::addresses::parse_host;
use super::auth_issuers::{IssuerAliases, issuer_of_discovery};
use super::environment::Environment;
use super::raw::Raw;
use super::settings::{SETTINGS, row_of};
use super::values::truth;

pub struct EnvAlias {
    pub name: &'static str,
    pub meaning: Meaning,
}

pub enum Meaning {
    /// A setting, and how the value is spelled for it.
    Setting(&'static str, fn(&str) -> String),
    /// A setting whose value stops the start when it does not fit.
    CheckedSetting(&'static str, fn(&str) -> String),
    /// Half of an address.
    Host,
    Port,
    /// The kind of the one agent that runs when the file lists none.
    Kind,
    /// A time limit of that agent, in milliseconds; 0 switches it off.
    AgentLimit(&'static str),
    /// Another setting of that agent, if it is such a one.
    Agent(&'static str, AppliesTo, fn(&str) -> Result<Raw, String>),
    /// Whether that agent may do all without asking.
    Force,
    /// Half of a route.
    RouteAdapter(&'static str),
    RouteModel(&'static str),
    /// A setting of the one issuer of tokens, and how the value is spelled for it. It stops the start when it does not fit.
    Issuer(&'static str, fn(&str) -> String),
    /// Whether that issuer counts.
    IssuerEnabled,
    /// Known, and not possible yet.
    NotYet,
}

/// The agents that a name is meant for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum AppliesTo {
    All,
    Programs,
    Kind(Kind),
    /// Kinds that have no program of their own.
    KindsWithoutProgram,
}

/// Where several names mean the same setting, the one further down wins.
pub static ENV_ALIASES: &[EnvAlias] = &[
    row("AGENTOS_HTTP_ADDR", Meaning::Setting("server.listen", as_it_is)),
    row("A2A_HOST", Meaning::Host),
    row("PORT", Meaning::Port),
    row("A2A_PORT", Meaning::Port),
    row("A2A_BASE_URL", Meaning::Setting("server.public_url", as_it_is)),
    row("A2A_PUBLIC_URL", Meaning::Setting("server.public_url", as_it_is)),
    row("A2A_ALLOWED_ORIGINS", Meaning::Setting("server.cors_origins", as_it_is)),
    row("WORKER_SSE_KEEPALIVE", Meaning::Setting("server.keep_alive", as_it_is)),
    row("AGENTOS_STORAGE_DIR", Meaning::Setting("store.url", file_in)),
    row("A2A_DATABASE_URL", Meaning::Setting("store.url", as_it_is)),
    row("A2A_AGENT_NAME", Meaning::Setting("card.name", as_it_is)),
    row("A2A_AGENT_DESCRIPTION", Meaning::Setting("card.description", as_it_is)),
    row("A2A_AGENT_ORG", Meaning::Setting("card.organization", as_it_is)),
    row("A2A_AGENT_ORG_URL", Meaning::Setting("card.organization_url", as_it_is)),
    row("LOG_FORMAT", Meaning::Setting("log.format", lower_case)),
    row("LOG_LEVEL", Meaning::Setting("log.level", level)),
    row("A2A_LOG_LEVEL", Meaning::Setting("log.level", level)),
    row("PUSH_NOTIFICATION_ALLOWED_HOSTS", Meaning::CheckedSetting("push.allow_hosts", as_it_is)),
    row("PUSH_NOTIFICATION_ALLOWED_CIDRS", Meaning::CheckedSetting("push.allow_cidrs", as_it_is)),
    row("A2A_AUTH_ENABLED", Meaning::CheckedSetting("auth.required", as_it_is)),
    row("A2A_AUTH_TOKEN", Meaning::CheckedSetting("auth.tokens", named_default)),
    row("A2A_AUTH_TOKENS", Meaning::CheckedSetting("auth.tokens", as_it_is)),
    row("AUTH_ENABLED", Meaning::IssuerEnabled),
    row("AUTH_OIDC_DISCOVERY_URL", Meaning::Issuer("issuer", issuer_of_discovery)),
    row("AUTH_ISSUER", Meaning::Issuer("issuer", as_it_is)),
    row("AUTH_JWKS_URI", Meaning::Issuer("jwks_url", as_it_is)),
    row("AUTH_RESOURCE_URL", Meaning::Issuer("audience", as_it_is)),
    row("AUTH_AUDIENCE", Meaning::Issuer("audience", as_it_is)),
    row("AGENT_ADAPTER", Meaning::Kind),
    row("AGENT_TIMEOUT_MS", Meaning::AgentLimit("timeout")),
    row("AGENT_IDLE_EXIT_MS", Meaning::AgentLimit("idle_timeout")),
    row("AGENT_MODEL", Meaning::Agent("model", AppliesTo::Programs, word)),
    row("AGENT_FORCE", Meaning::Force),
    row("AGENT_REPO_PATH", Meaning::Agent("workspace", AppliesTo::Programs, word)),
    row("AGENT_ALLOWED_REPO_ROOTS", Meaning::Agent("workspace_roots", AppliesTo::Programs, folders)),
    row("AGENT_BINARY", Meaning::Agent("command", AppliesTo::KindsWithoutProgram, program)),
    row("AGENT_ARGS", Meaning::Agent("args", AppliesTo::KindsWithoutProgram, arguments)),
    row("AGENT_APPROVAL_PATTERN", Meaning::Agent("approval_pattern", AppliesTo::Kind(Kind::Generic), word)),
    row("AGENT_APPROVAL_RESPONSE", Meaning::Agent("approval_response", AppliesTo::Kind(Kind::Generic), word)),
    row("CLAUDE_CODE_PATH", Meaning::Agent("command", AppliesTo::Kind(Kind::ClaudeCode), program)),
    row("CODEX_BINARY_PATH", Meaning::Agent("command", AppliesTo::Kind(Kind::Codex), program)),
    row("CURSOR_AGENT_PATH", Meaning::Agent("command", AppliesTo::Kind(Kind::Cursor), program)),
    row("OPENCODE_BINARY_PATH", Meaning::Agent("command", AppliesTo::Kind(Kind::Opencode), program)),
    row("VIBE_BINARY_PATH", Meaning::Agent("command", AppliesTo::Kind(Kind::Vibe), program)),
    row("ROUTING__COMPLEX__ADAPTER", Meaning::RouteAdapter("routing.complex")),
    row("ROUTING__COMPLEX__MODEL", Meaning::RouteModel("routing.complex")),
    row("ROUTING__MID__ADAPTER", Meaning::RouteAdapter("routing.mid")),
    row("ROUTING__MID__MODEL", Meaning::RouteModel("routing.mid")),
    row("ROUTING__ROUTINE__ADAPTER", Meaning::RouteAdapter("routing.routine")),
    row("ROUTING__ROUTINE__MODEL", Meaning::RouteModel("routing.routine")),
    row("A2A_AGENT_DISCOVERY_MAX_AGE", Meaning::NotYet),
    row("AGENTOS_CONFIG", Meaning::NotYet),
    row("AGENTOS_NATS_URL", Meaning::NotYet),
    row("AUTH_ALLOWED_REDIRECT_URIS", Meaning::NotYet),
    row("AUTH_SERVER_URL", Meaning::NotYet),
    row("CONFIG_FILE", Meaning::NotYet),
    row("DATABASE_URL", Meaning::NotYet),
    row("MCP_TRANSPORT", Meaning::NotYet),
    row("OTEL_ENABLED", Meaning::NotYet),
    row("WORKER_SSE_TIMEOUT", Meaning::NotYet),
    row("WORKSPACE_ENABLED", Meaning::NotYet),
];

/// What the names set, the strongest last.
#[derive(Default)]
pub struct AliasValues {
    /// Key, names and value.
    pub settings: Vec<(&'static str, String, Raw)>,
    /// The same, where a value that does not fit stops the start.
    pub checked_settings: Vec<(&'static str, String, Raw)>,
    pub kind: Option<(&'static str, Raw)>,
    pub agent_settings: Vec<AgentAlias>,
    /// The name that says whether tools may be used without asking, and what it says.
    pub force: Option<(&'static str, Force)>,
    pub routes: Vec<RouteAlias>,
    pub issuer: IssuerAliases,
    pub warnings: Vec<String>,
}

/// A setting of the one agent.
pub struct AgentAlias {
    pub name: &'static str,
    pub key: &'static str,
    pub applies_to: AppliesTo,
    /// `Err` says what is wrong with it, in words that follow the name.
    pub value: Result<Raw, String>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Force {
    /// All is allowed.
    All,
    /// Who can ask asks.
    Ask,
}

/// What two names say of one profile.
pub struct RouteAlias {
    /// Of the setting.
    pub key: &'static str,
    pub adapter: Option<(&'static str, String)>,
    pub model: Option<(&'static str, String)>,
}

pub fn read_aliases(environment: &Environment) -> AliasValues {
    let mut values = AliasValues::default();
    let (mut host, mut port) = (None, None);
    for EnvAlias { name, meaning } in ENV_ALIASES {
        let text = match environment.text(name) {
            None => continue,
            Some(Ok(text)) => text.trim(),
            Some(Err(words)) => {
                values.warnings.push(format!("{name} {words}; it is ignored"));
                continue;
            }
        };
        match meaning {
            Meaning::Setting(key, spell) => {
                values.settings.push((key, (*name).to_owned(), Raw::untyped(spell(text))));
            }
            Meaning::CheckedSetting(key, spell) => {
                values.checked_settings.push((key, (*name).to_owned(), Raw::untyped(spell(text))));
            }
            Meaning::Host if parse_host(text).is_some() => host = Some((*name, text)),
            Meaning::Host => values.warnings.push(unusable(name, text, "an IP address or localhost")),
            Meaning::Port if text.parse::<u16>().is_ok() => port = Some((*name, text)),
            Meaning::Port => values.warnings.push(unusable(name, text, "a port number")),
            Meaning::Kind => values.kind = Some((name, Raw::untyped(text))),
            Meaning::AgentLimit(key) => match milliseconds(text) {
                Some(limit) => values.agent_settings.push(AgentAlias {
                    name,
                    key,
                    applies_to: AppliesTo::All,
                    value: Ok(Raw::untyped(limit)),
                }),
                None => values.warnings.push(unusable(name, text, "a number of milliseconds")),
            },
            Meaning::Agent(key, applies_to, spell) => {
                values.agent_settings.push(AgentAlias { name, key, applies_to: *applies_to, value: spell(text) })
            }
            Meaning::Force => {
                let (force, warning) = force(name, text);
                values.force = Some((name, force));
                values.warnings.extend(warning);
            }
            Meaning::RouteAdapter(key) => values.route(key).adapter = Some((name, text.to_owned())),
            Meaning::RouteModel(key) => values.route(key).model = Some((name, text.to_owned())),
            Meaning::Issuer(key, spell) => values.issuer.values.push((key, name, Raw::untyped(spell(text)))),
            Meaning::IssuerEnabled => match truth(text) {
                Some(is_enabled) => values.issuer.is_enabled = Some((name, is_enabled)),
                None => values.warnings.push(unusable(name, text, "true or false")),
            },
            Meaning::NotYet => {
                values.warnings.push(format!("{name} has no effect yet in this version"));
            }
        }
    }
    values.settings.extend(listen(host, port));
    values
}

impl AliasValues {
    /// The names that describe the one agent.
    pub fn agent_names(&self) -> impl Iterator<Item = &'static str> {
        let kind = self.kind.iter().map(|(name, _)| *name);
        kind.chain(self.agent_settings.iter().map(|alias| alias.name)).chain(self.force.iter().map(|(name, _)| *name))
    }

    fn route(&mut self, key: &'static str) -> &mut RouteAlias {
        let position = self.routes.iter().position(|route| route.key == key).unwrap_or_else(|| {
            self.routes.push(RouteAlias { key, adapter: None, model: None });
            self.routes.len() - 1
        });
        &mut self.routes[position]
    }
}

/// One address from the two halves, either of which may be missing.
fn listen(host: Option<(&str, &str)>, port: Option<(&str, &str)>) -> Option<(&'static str, String, Raw)> {
    let names: Vec<&str> = [host, port].into_iter().flatten().map(|(name, _)| name).collect();
    if names.is_empty() {
        return None;
    }
    let host = host.map_or("", |(_, host)| host);
    // An IPv6 address stands in brackets before its port.
    let host = if host.contains(':') && !host.starts_with('[') { format!("[{host}]") } else { host.to_owned() };
    let usual = row_of(&SETTINGS, "server.listen").default.rsplit(':').next().unwrap_or_default();
    let port = port.map_or(usual, |(_, port)| port);
    Some(("server.listen", names.join(", "), Raw::untyped(format!("{host}:{port}"))))
}

fn unusable(name: &str, text: &str, expected: &str) -> String {
    format!("{name} is {}; expected {expected}; it is ignored", Raw::untyped(text))
}

/// A token may have a colon of its own.
fn named_default(token: &str) -> String {
    format!("default:{token}")
}

fn as_it_is(text: &str) -> String {
    text.to_owned()
}

fn lower_case(text: &str) -> String {
    text.to_ascii_lowercase()
}

fn file_in(directory: &str) -> String {
    format!("sqlite:{}/sabir.db", directory.trim_end_matches('/'))
}

/// Some servers count in other words.
fn level(text: &str) -> String {
    match text.to_ascii_lowercase().as_str() {
        "warning" => "warn".to_owned(),
        "critical" | "fatal" => "error".to_owned(),
        "silent" => "off".to_owned(),
        _ => text.to_owned(),
    }
}

fn word(text: &str) -> Result<Raw, String> {
    Ok(Raw::untyped(text))
}

/// A path, blanks and all.
fn program(text: &str) -> Result<Raw, String> {
    Ok(Raw::List(vec![Raw::Text(text.to_owned())]))
}

fn arguments(text: &str) -> Result<Raw, String> {
    let words = split_words(text).ok_or_else(|| format!("is {}; one of its quotes has no end", Raw::untyped(text)))?;
    Ok(Raw::List(words.into_iter().map(Raw::Text).collect()))
}

fn folders(text: &str) -> Result<Raw, String> {
    let folders = text.split([':', ',']).map(str::trim).filter(|folder| !folder.is_empty());
    Ok(Raw::List(folders.map(|folder| Raw::Text(folder.to_owned())).collect()))
}

/// What is neither yes nor no must not open anything.
fn force(name: &str, text: &str) -> (Force, Option<String>) {
    match truth(text) {
        Some(true) => (Force::All, None),
        Some(false) => (Force::Ask, None),
        None => {
            let warning = format!("{name} is {}; expected true or false; taken as false", Raw::untyped(text));
            (Force::Ask, Some(warning))
        }
    }
}

fn milliseconds(text: &str) -> Option<String> {
    match text.parse::<u64>().ok()? {
        0 => Some("off".to_owned()),
        number => Some(format!("{number}ms")),
    }
}

/// Words between blanks, with double quotes around blanks; `None` if a quote has no end.
fn split_words(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut is_quoted = false;
    for letter in line.chars() {
        match letter {
            '"' => {
                is_quoted = !is_quoted;
                // Two quotes alone are an empty word.
                word.get_or_insert_default();
            }
            letter if letter.is_whitespace() && !is_quoted => words.extend(word.take()),
            letter => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    (!is_quoted).then_some(words)
}

const fn row(name: &'static str, meaning: Meaning) -> EnvAlias {
    EnvAlias { name, meaning }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_and_port_make_one_address() {
        for (variables, expected) in [
            (vec![("PORT", "8080")], "PORT: \":8080\""),
            (vec![("PORT", "8080"), ("A2A_PORT", "8000")], "A2A_PORT: \":8000\""),
            (vec![("A2A_HOST", "::1")], "A2A_HOST: \"[::1]:41242\""),
            (vec![("A2A_HOST", "0.0.0.0"), ("A2A_PORT", "8000")], "A2A_HOST, A2A_PORT: \"0.0.0.0:8000\""),
            (vec![("PORT", "tcp://10.0.0.1")], "PORT is \"tcp://10.0.0.1\"; expected a port number; it is ignored"),
            (vec![("A2A_HOST", "box")], "A2A_HOST is \"box\"; expected an IP address or localhost; it is ignored"),
            (vec![("OTEL_ENABLED", "true")], "OTEL_ENABLED has no effect yet in this version"),
            (vec![("AGENT_FORCE", "maybe")], "AGENT_FORCE is \"maybe\"; expected true or false; taken as false"),
        ] {
            let values = read_aliases(&Environment::new(variables.clone()));
            let settings = values.settings.iter().map(|(_, names, raw)| format!("{names}: {raw}"));
            let lines: Vec<String> = settings.chain(values.warnings).collect();
            assert_eq!(lines.join("\n"), expected, "{variables:?}");
        }
    }

    #[test]
    fn arguments_are_words_between_blanks_and_quotes() {
        for (line, expected) in [
            ("", Some(&[][..])),
            ("  a   b ", Some(&["a", "b"])),
            (r#"--system "be brief" -v"#, Some(&["--system", "be brief", "-v"])),
            (r#"--name="a b""#, Some(&["--name=a b"])),
            (r#"a "" b"#, Some(&["a", "", "b"])),
            ("it's", Some(&["it's"])),
            (r#"a "b"#, None),
        ] {
            let expected = expected.map(|words| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
            assert_eq!(split_words(line), expected, "{line}");
        }
    }
}

//! Credentials of callers: `[[auth.token]]` and `[[auth.api_key]]` tables, and tokens in the environment.
//!
//! Only digests leave this file. What is wrong with a secret is said without repeating it.

use anyhow::anyhow;
use sabir_server::{Credential, Digest, Grant};
use serde_json::{Value, json};

use super::file::{File, tables_of};
use super::origin::{Configured, Problem};
use super::raw::Raw;
use super::sections::{AuthSection, Config, CredentialConfig};
use super::settings::Setting;
use super::values::{ValueKind, list, optional, text};

/// The lists of tables in `[auth]`.
pub const LISTS: [&str; 2] = ["token", "api_key"];

/// What a credential allows where nobody says: everything with its own tasks.
const DEFAULT_SCOPES: &str = "run,read";

pub fn credential_settings(list_name: &'static str) -> Vec<Setting<CredentialConfig>> {
    type Row = Setting<CredentialConfig>;
    let mut rows = vec![
        Row::new("subject", "", subject(), |credential| &mut credential.subject)
            .help("Whose it is. Tasks belong to the subject, so a new token with the same subject sees the same tasks.")
            .required(),
        Row::new("hash", "", hash(), |credential| &mut credential.digest)
            .help("The hash of the secret, as `sabir token new` prints it. The secret itself is written nowhere.")
            .required(),
        Row::new("tenant", "", optional(text()), |credential| &mut credential.tenant)
            .help("The organisation that the subject belongs to. Subjects of different tenants never share tasks."),
        Row::new("scopes", DEFAULT_SCOPES, list(scope()), |credential| &mut credential.scopes).help(
            "What it allows: `run`, `read`, `approve`, `admin`, or another name that an agent's `approver` has; \
             `run:coder` for one agent alone. `run` includes `read`.",
        ),
    ];
    if list_name == "api_key" {
        let header = Row::new("header", "X-API-Key", header_name(), |credential| &mut credential.header)
            .help("The request header that the key is shown in.");
        rows.push(header);
    }
    rows
}

/// Reads the lists of `[auth]` into the configuration.
pub fn read_lists(config: &mut Configured<Config>, file: &File, problems: &mut Vec<Problem>) {
    for name in LISTS {
        let path = format!("auth.{name}");
        let settings = credential_settings(name);
        let mut found: Vec<Configured<CredentialConfig>> = Vec::new();
        for entry in file.entries_of("auth").filter(|entry| entry.key == name) {
            for table in tables_of(&file.name, &path, entry, problems) {
                let new = Configured::read_table(
                    CredentialConfig::default(),
                    &settings,
                    &path,
                    &[],
                    &file.name,
                    table,
                    problems,
                );
                let is_same = |old: &Configured<CredentialConfig>| {
                    old.subject.digest.is_some() && old.subject.digest == new.subject.digest
                };
                if let (Some(line), true) = (new.line("hash"), found.iter().any(is_same)) {
                    let words = format!("two [[{path}]] have the same hash; each secret has one subject");
                    problems.push(Problem::in_file(&file.name, line, &words));
                }
                found.push(new);
            }
        }
        for (position, credential) in found.into_iter().enumerate() {
            let credential = config.absorb(&format!("{path}.{position}"), credential);
            let AuthSection { token, api_key, .. } = &mut config.subject.auth;
            if name == "token" { token.push(credential) } else { api_key.push(credential) }
        }
    }
}

/// `NAME:TOKEN`, or a token alone, whose subject is then `default`.
pub fn named_tokens() -> ValueKind<Vec<Credential>> {
    let schema = json!({"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "string"}]});
    ValueKind::new(schema, |raw| {
        let mut credentials = Vec::new();
        for member in raw.members() {
            let text = member.as_text().unwrap_or_default().trim();
            let (name, token) = text.split_once(':').unwrap_or(("default", text));
            if !is_subject(name) || token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
                return Err(
                    "does not fit; expected name:token pairs, tokens without spaces and control characters".into()
                );
            }
            let grant = Grant {
                subject: name.to_owned(),
                tenant: String::new(),
                scopes: DEFAULT_SCOPES.split(',').map(str::to_owned).collect(),
            };
            credentials.push(Credential { digest: Digest::of(token.as_bytes()), grant });
        }
        let shown: Vec<Value> =
            credentials.iter().map(|each| json!(format!("{}:(not shown)", each.grant.subject))).collect();
        Ok((credentials, Value::Array(shown)))
    })
}

fn subject() -> ValueKind<String> {
    ValueKind::of_text("1 to 256 characters without spaces and control characters", |text| {
        is_subject(text).then(|| text.to_owned())
    })
}

fn is_subject(text: &str) -> bool {
    (1..=256).contains(&text.len()) && !text.chars().any(|letter| letter.is_control() || letter.is_whitespace())
}

fn hash() -> ValueKind<Option<Digest>> {
    ValueKind::new(json!({"type": "string"}), |raw| match raw.as_text().and_then(Digest::parse) {
        Some(digest) => Ok((Some(digest), json!("(not shown)"))),
        None => Err("does not fit; expected sha256: and 64 hexadecimal digits; `sabir token new` makes one".into()),
    })
}

/// A scope, alone or with an agent.
pub fn scope() -> ValueKind<String> {
    ValueKind::of_text("a scope such as run, read, approve, admin, metrics or run:coder", |text| {
        let is_name = |name: &str| {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-/".contains(&byte))
        };
        let (name, agent) = text.split_once(':').map_or((text, None), |(name, agent)| (name, Some(agent)));
        // An admin sees all agents, and figures are of all agents; there is no smaller one.
        let fits =
            is_name(name) && agent.is_none_or(is_name) && (!["admin", "metrics"].contains(&name) || agent.is_none());
        fits.then(|| text.to_owned())
    })
}

fn header_name() -> ValueKind<String> {
    ValueKind::of_text("the name of a request header other than Authorization", |text| {
        let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        let name = text.to_ascii_lowercase();
        let is_taken = ["authorization", "host", "cookie", "content-type", "content-length"].contains(&name.as_str());
        (!name.is_empty() && name.bytes().all(is_token) && !is_taken).then_some(name)
    })
}

/// Refuses a subject or a scope that the configuration would not take.
pub fn check_credential(subject_text: &str, scopes: &[String]) -> anyhow::Result<()> {
    let raw = |text: &str| Raw::Text(text.to_owned());
    subject().read(&raw(subject_text)).map_err(|words| anyhow!("the subject {words}"))?;
    for text in scopes {
        scope().read(&raw(text)).map_err(|words| anyhow!("the scope {words}"))?;
    }
    Ok(())
}

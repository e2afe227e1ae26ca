//! The issuers whose tokens are accepted: `[[auth.issuer]]` tables, or one issuer from environment names of other servers.
//!
//! A mistake here stops the start, also in those names: a server that was told to ask for tokens must not run without.

use std::sync::LazyLock;
use std::time::Duration;

use sabir_outbound::Target;
use sabir_outbound::guard::Scheme;
use sabir_server::jwt::{JwtAlgorithm, JwtSettings};
use serde_json::json;

use super::env_aliases::AliasValues;
use super::file::{File, tables_of};
use super::origin::{Configured, Problem, ValueOrigin, repeated};
use super::raw::{Raw, RawTable};
use super::sections::Config;
use super::settings::{Setting, row_of};
use super::table_values::text_table;
use super::values::{ValueKind, choice, duration, list, not_empty, optional, text};

/// The path of the tables in the file.
pub const PATH: &str = "auth.issuer";

/// The keys of an `[[auth.issuer]]` table.
pub static ISSUER_SETTINGS: LazyLock<Vec<Setting<JwtSettings>>> = LazyLock::new(|| {
    type Row = Setting<JwtSettings>;
    vec![
        Row::new("issuer", "", issuer_url(), |issuer| &mut issuer.issuer)
            .help(
                "Its address, exactly as `iss` in its tokens and `issuer` in its discovery document spell it. `http://` \
                 only on loopback, or with a `jwks_url`.",
            )
            .required(),
        Row::new("audience", "", not_empty(list(text())), |issuer| &mut issuer.audience).help(
            "A token is accepted if its `aud` has one of these. Without it `server.public_url`, which must then be set.",
        ),
        Row::new("jwks_url", "", optional(document_url()), |issuer| &mut issuer.jwks_url).help(
            "Where its keys are. Without it its discovery document says so \
             (`/.well-known/openid-configuration` or RFC 8414).",
        ),
        Row::new(
            "algorithms",
            "RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, EdDSA",
            not_empty(list(algorithm())),
            |issuer| &mut issuer.algorithms,
        )
        .help("Signature algorithms that are accepted, as far as the key is for them."),
        Row::new("leeway", "60s", leeway(), |issuer| &mut issuer.leeway)
            .help("How far its clock and ours may be apart, at most 10m."),
        Row::new("subject_claim", "sub", text(), |issuer| &mut issuer.subject_claim).help(
            "The claim that says who calls. Tasks belong to the issuer and this name, so it must never be given to \
             somebody else.",
        ),
        Row::new("tenant_claim", "", optional(text()), |issuer| &mut issuer.tenant_claim)
            .help("The claim that says for which organisation, if tokens have one. Dots lead into objects."),
        Row::new("scope_claims", "scope, scp, permissions, roles", list(text()), |issuer| &mut issuer.scope_claims)
            .help("Claims that list scopes, as a text or a list. Dots lead into objects: `realm_access.roles`."),
        Row::new("scope_names", "", text_table(), |issuer| &mut issuer.scope_names).help(
            "What it calls our scopes: `{ \"a2a.run\" = \"run\" }`. Without it the scopes are called `run`, `read`, \
             `approve`, `admin` and `metrics`; with it only the names in this table count.",
        ),
        Row::new("default_scopes", "run, read", list(text()), |issuer| &mut issuer.default_scopes)
            .help("What a valid token may do that names none of our scopes; `[]` is nothing."),
    ]
});

/// What the names of other servers say about their one issuer.
#[derive(Default)]
pub struct IssuerAliases {
    /// Key, name and value.
    pub values: Vec<(&'static str, &'static str, Raw)>,
    /// The name that switches it on or off, and what it says.
    pub is_enabled: Option<(&'static str, bool)>,
}

/// All issuers. The public address of `config` is the audience of those that have none.
pub fn collect(
    config: &Config,
    file: &File,
    aliases: &AliasValues,
    problems: &mut Vec<Problem>,
    warnings: &mut Vec<String>,
) -> Vec<Configured<JwtSettings>> {
    let public_url = config.server.public_url.as_deref();
    let mut issuers: Vec<Configured<JwtSettings>> = Vec::new();
    for table in tables_in(file, problems) {
        let new = Configured::read_table(blank(), &ISSUER_SETTINGS, PATH, &[], &file.name, table, problems);
        problems.extend(repeated(&file.name, "issuers", "issuer", &issuers, &new));
        let origin = ValueOrigin::File { name: file.name.clone(), line: table.line };
        issuers.push(complete(new, public_url, &origin, problems));
    }
    let IssuerAliases { values, is_enabled } = &aliases.issuer;
    let names: Vec<&str> = values.iter().map(|(_, name, _)| *name).collect();
    match is_enabled {
        _ if !issuers.is_empty() => {
            warnings.extend(names.iter().map(|name| format!("{name} is ignored, since {} lists issuers", file.name)));
        }
        Some((switch, false)) => {
            warnings.extend(names.iter().map(|name| format!("{name} is ignored, since {switch} is false")));
        }
        // Other credentials will do.
        Some((_, true)) if values.is_empty() && config.asks_for_credentials() => {}
        Some((switch, true)) if values.is_empty() => problems.push(Problem::outside(format!(
            "{switch} asks callers for tokens, and nothing says who issues them; set AUTH_OIDC_DISCOVERY_URL, or write \
             [[{PATH}]] or [[auth.token]]"
        ))),
        _ if values.is_empty() => {}
        _ => issuers.extend(from_aliases(values, public_url, problems)),
    }
    issuers
}

/// The name of an issuer in keys of `sabir config`.
pub fn key_of(issuer: &JwtSettings) -> String {
    format!("{PATH}.{}", json!(issuer.issuer))
}

/// `AUTH_OIDC_DISCOVERY_URL` is the address of the document, which begins with the issuer.
pub fn issuer_of_discovery(url: &str) -> String {
    url.strip_suffix("/.well-known/openid-configuration").unwrap_or(url).to_owned()
}

fn tables_in<'a>(file: &'a File, problems: &mut Vec<Problem>) -> Vec<&'a RawTable> {
    let lists = file.entries_of("auth").filter(|entry| entry.key == "issuer");
    lists.flat_map(|list| tables_of(&file.name, PATH, list, problems)).collect()
}

fn from_aliases(
    values: &[(&'static str, &'static str, Raw)],
    public_url: Option<&str>,
    problems: &mut Vec<Problem>,
) -> Option<Configured<JwtSettings>> {
    let mut issuer = Configured::new(blank(), &ISSUER_SETTINGS);
    let mut failures = Vec::new();
    for (key, name, raw) in values {
        let origin = ValueOrigin::EnvAlias((*name).to_owned());
        failures.extend(issuer.set(row_of(&ISSUER_SETTINGS, key), raw, origin).err());
    }
    let origin = ValueOrigin::EnvAlias(values.first().map_or("", |(_, name, _)| name).to_owned());
    if failures.is_empty() && issuer.is_default("issuer") {
        failures.push(Problem::outside(format!(
            "{origin} asks callers for tokens, and nothing says who issues them; set AUTH_OIDC_DISCOVERY_URL"
        )));
    }
    if !failures.is_empty() {
        problems.append(&mut failures);
        return None;
    }
    Some(complete(issuer, public_url, &origin, problems))
}

/// Fills in the audience, and checks what one key alone cannot say. `origin` is where the issuer was asked for.
fn complete(
    mut issuer: Configured<JwtSettings>,
    public_url: Option<&str>,
    origin: &ValueOrigin,
    problems: &mut Vec<Problem>,
) -> Configured<JwtSettings> {
    if issuer.is_default("audience") {
        match public_url {
            Some(url) => {
                issuer.subject.audience = vec![url.to_owned()];
                issuer.value_mut("audience").value = json!([url]);
            }
            None => {
                let words = format!("this [[{PATH}]] has no audience; name one, or set server.public_url");
                problems.push(match origin {
                    ValueOrigin::File { name, line } => Problem::in_file(name, *line, &words),
                    origin => Problem::outside(format!(
                        "{origin}: tokens need an audience; set AUTH_AUDIENCE, AUTH_RESOURCE_URL or server.public_url"
                    )),
                });
            }
        }
    }
    // Whoever can read and change what is on the way could put in keys of his own.
    let is_open = is_http_beyond_loopback(&issuer.subject.issuer) && issuer.subject.jwks_url.is_none();
    if is_open {
        let words = "must begin with https:// unless it is on loopback, or jwks_url says where its keys are";
        problems.push(Problem::of(&issuer.value("issuer").origin, "issuer", words));
    }
    issuer
}

fn is_http_beyond_loopback(url: &str) -> bool {
    let Ok(target) = Target::parse(url) else { return false };
    let host = target.host.to_string();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let is_loopback = host == "localhost" || bare.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback());
    target.scheme == Scheme::Http && !is_loopback
}

/// Kept as it is written, slash and all, since tokens are compared with it.
fn issuer_url() -> ValueKind<String> {
    let expected = "the address of an issuer without query and user, such as \"https://login.example.com\"";
    ValueKind::of_text(expected, |text| {
        let is_plain = !text.contains(['?', '#']) && text.bytes().all(|byte| byte.is_ascii_graphic());
        (is_plain && Target::parse(text).is_ok()).then(|| text.to_owned())
    })
}

fn document_url() -> ValueKind<String> {
    let expected = "an address without user, such as \"https://login.example.com/keys\"";
    ValueKind::of_text(expected, |text| Target::parse(text).is_ok().then(|| text.to_owned()))
}

/// Expired tokens are accepted for so long.
fn leeway() -> ValueKind<Duration> {
    let duration = duration();
    ValueKind::new(duration.schema.clone(), move |raw| match duration.read(raw)? {
        (leeway, _) if leeway > LONGEST_LEEWAY => Err(raw.unexpected("at most 10m")),
        read => Ok(read),
    })
}

const LONGEST_LEEWAY: Duration = Duration::from_secs(600);

fn algorithm() -> ValueKind<JwtAlgorithm> {
    let words = JwtAlgorithm::ALL.map(|algorithm| (algorithm.name(), algorithm));
    choice(&words).called(&words.map(|(name, _)| name).join(" or "))
}

/// Without what the table of settings fills in.
pub fn blank() -> JwtSettings {
    JwtSettings { audience: Vec::new(), ..JwtSettings::new("", "") }
}

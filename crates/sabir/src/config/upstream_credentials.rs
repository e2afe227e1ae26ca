//! What a remote agent is shown of this server: the settings, what does not go together, and secrets of the environment.
//!
//! These credentials are the operator's and have nothing to do with those of callers (`auth`). A remote agent is shown one
//! credential at most. A variable that is not set is no mistake of the file: `start_checks` refuses it, so that `sabir config` can
//! be asked without the secrets at hand.

use sabir_outbound::credentials::{ApiKeyPlace, InvalidCredentials};
use sabir_outbound::guard::Host;
use sabir_outbound::{Scheme, Target, UpstreamCredentials};

use crate::upstream::{self, UpstreamTls};

use super::environment::Environment;
use super::origin::{Configured, Problem, ValueOrigin};
use super::paths::{pem_file, token_file};
use super::remote_agents::remote_url;
use super::secrets::{given_secret, password, secret_table};
use super::sections::{AgentConfig, AgentKind, Config, OauthClientAuth, RemoteConfig, Secret, SecretInput};
use super::settings::Setting;
use super::table_values::variable;
use super::values::*;

type Row = Setting<AgentConfig>;

pub fn upstream_settings() -> Vec<Row> {
    let mut rows = fixed_settings();
    rows.extend(oauth_settings());
    rows.extend(header_and_tls_settings());
    rows
}

fn fixed_settings() -> Vec<Row> {
    let places = [("header", ApiKeyPlace::Header), ("query", ApiKeyPlace::Query), ("cookie", ApiKeyPlace::Cookie)];
    vec![
        Row::new("token", "", optional(given_secret()), |agent| &mut agent.remote.upstream.token.value).help(
            "The bearer token that the remote agent is shown. Rather use `token_env` or `token_file`, which keep it out of \
             this file.",
        ),
        Row::new("token_env", "", optional(variable()), |agent| &mut agent.remote.upstream.token.variable)
            .help("The variable of the environment that has the bearer token."),
        Row::new("token_file", "", optional(token_file()), |agent| &mut agent.remote.upstream.token_file)
            .help("A file with the bearer token. It is read again when it is used, so the token may be rotated."),
        Row::new("api_key", "", optional(given_secret()), |agent| &mut agent.remote.upstream.api_key.value)
            .help("The API key that the remote agent is shown. For `openai` it is a bearer token, unless `api_key_name` is set."),
        Row::new("api_key_env", "", optional(variable()), |agent| &mut agent.remote.upstream.api_key.variable)
            .help("The variable of the environment that has the API key."),
        Row::new("api_key_name", "X-API-Key", text(), |agent| &mut agent.remote.upstream.api_key_name)
            .help(
                "The name of the header, the query parameter or the cookie that the API key is shown in. The default of \
                 `openai` is `Authorization`.",
            ),
        Row::new("api_key_in", "header", choice(&places), |agent| &mut agent.remote.upstream.api_key_in)
            .help("Where the API key is shown: `header`, `query` or `cookie`."),
        Row::new("user", "", optional(text()), |agent| &mut agent.remote.upstream.user)
            .help("The user of HTTP basic authentication at the remote agent."),
        Row::new("password", "", optional(password()), |agent| &mut agent.remote.upstream.password.value)
            .help("The password of `user`."),
        Row::new("password_env", "", optional(variable()), |agent| &mut agent.remote.upstream.password.variable)
            .help("The variable of the environment that has the password."),
    ]
}

fn oauth_settings() -> Vec<Row> {
    let ways = [("basic", OauthClientAuth::Basic), ("post", OauthClientAuth::Post)];
    vec![
        Row::new("oauth_token_url", "", optional(remote_url()), |agent| &mut agent.remote.upstream.oauth.token_url).help(
            "The token endpoint (OAuth 2) that issues tokens for the remote agent. Its host and port are trusted, also if \
             they are not public.",
        ),
        Row::new("oauth_client_id", "", optional(text()), |agent| &mut agent.remote.upstream.oauth.client_id)
            .help("Who this server is for the token endpoint."),
        Row::new("oauth_client_secret", "", optional(given_secret()), |agent| {
            &mut agent.remote.upstream.oauth.client_secret.value
        })
        .help(
            "The secret of `oauth_client_id`. Without it the endpoint gets the id alone and knows the client by \
             `client_certificate`.",
        ),
        Row::new("oauth_client_secret_env", "", optional(variable()), |agent| {
            &mut agent.remote.upstream.oauth.client_secret.variable
        })
        .help("The variable of the environment that has this secret."),
        Row::new("oauth_client_auth", "basic", choice(&ways), |agent| {
            &mut agent.remote.upstream.oauth.client_auth
        })
        .help("How the token endpoint gets the secret: in a header (`basic`) or in the form (`post`)."),
        Row::new("oauth_scopes", "", list(text()), |agent| &mut agent.remote.upstream.oauth.scopes)
            .help("The scopes to ask for."),
        Row::new("oauth_audience", "", list(text()), |agent| &mut agent.remote.upstream.oauth.audience)
            .help("Who the token is for: the parameter `audience`, one or several."),
        Row::new("oauth_resource", "", list(text()), |agent| &mut agent.remote.upstream.oauth.resource)
            .help("Who the token is for: the parameter `resource` of RFC 8707, one or several."),
        Row::new("oauth_subject_token_file", "", optional(token_file()), |agent| {
            &mut agent.remote.upstream.oauth.subject_token_file
        })
        .help(
            "A file with a token that is exchanged for one for the remote agent (RFC 8693), such as the service account \
             token of a pod. It is read again when it is used. `oauth_client_id` may be left out then.",
        ),
        Row::new("oauth_subject_token_type", "", optional(text()), |agent| {
            &mut agent.remote.upstream.oauth.subject_token_type
        })
        .help("What kind of token that is. Without it `urn:ietf:params:oauth:token-type:jwt`."),
    ]
}

fn header_and_tls_settings() -> Vec<Row> {
    vec![
        Row::new("headers", "", secret_table(), |agent| &mut agent.remote.upstream.headers).help(
            "A table of headers that every request to the remote agent has. Their values are not shown by `sabir config`.",
        ),
        Row::new("client_certificate", "", optional(pem_file()), |agent| {
            &mut agent.remote.upstream.client_certificate
        })
        .help(
            "A PEM file with the certificate that the remote agent and the token endpoint are shown (mutual TLS), followed \
             by those between it and its authority.",
        ),
        Row::new("client_key", "", optional(pem_file()), |agent| &mut agent.remote.upstream.client_key)
            .help("A PEM file with the private key of `client_certificate`, not encrypted."),
        Row::new("ca", "", optional(pem_file()), |agent| &mut agent.remote.upstream.ca).help(
            "A PEM file with authorities that the certificates of the remote agent and the token endpoint may have, beside \
             those that the machine trusts.",
        ),
    ]
}

/// The kinds of credentials, of which an agent has one, by their keys.
const KINDS: [&[&str]; 4] = [
    &["token", "token_env", "token_file"],
    &["api_key", "api_key_env", "api_key_name", "api_key_in"],
    &["user", "password", "password_env"],
    &[
        "oauth_token_url",
        "oauth_client_id",
        "oauth_client_secret",
        "oauth_client_secret_env",
        "oauth_client_auth",
        "oauth_scopes",
        "oauth_audience",
        "oauth_resource",
        "oauth_subject_token_file",
        "oauth_subject_token_type",
    ],
];

/// Ways to say the same; one of each is enough.
const SAME: [&[&str]; 4] = [
    &["token", "token_env", "token_file"],
    &["api_key", "api_key_env"],
    &["password", "password_env"],
    &["oauth_client_secret", "oauth_client_secret_env"],
];

/// A key that has no use without one of others.
const NEEDS: [(&str, &[&str]); 18] = [
    ("api_key_name", &["api_key", "api_key_env"]),
    ("api_key_in", &["api_key", "api_key_env"]),
    ("user", &["password", "password_env"]),
    ("password", &["user"]),
    ("password_env", &["user"]),
    ("oauth_token_url", &["oauth_client_id", "oauth_subject_token_file"]),
    (
        "oauth_client_id",
        &["oauth_client_secret", "oauth_client_secret_env", "client_certificate", "oauth_subject_token_file"],
    ),
    ("oauth_client_id", &["oauth_token_url"]),
    ("oauth_client_secret", &["oauth_client_id"]),
    ("oauth_client_secret_env", &["oauth_client_id"]),
    ("oauth_client_auth", &["oauth_client_secret", "oauth_client_secret_env"]),
    ("oauth_scopes", &["oauth_token_url"]),
    ("oauth_audience", &["oauth_token_url"]),
    ("oauth_resource", &["oauth_token_url"]),
    ("oauth_subject_token_file", &["oauth_token_url"]),
    ("oauth_subject_token_type", &["oauth_subject_token_file"]),
    ("client_certificate", &["client_key"]),
    ("client_key", &["client_certificate"]),
];

/// Settings that do not go together.
pub fn check(agent: &Configured<AgentConfig>) -> Vec<Problem> {
    let is_set = |key: &&&str| !agent.is_default(key);
    let mut problems = Vec::new();
    let mut contradict = |first: &str, second: &str, remedy: &str| {
        let words = format!("is set beside {}; {remedy}", name_of(agent, first));
        problems.push(problem(agent, second, &words));
    };
    for keys in SAME {
        if let [first, second, ..] = keys.iter().filter(is_set).collect::<Vec<_>>()[..] {
            contradict(first, second, "leave one of them out");
        }
    }
    let kinds: Vec<&str> = KINDS.iter().filter_map(|keys| keys.iter().find(is_set).copied()).collect();
    if let [first, second, ..] = kinds[..] {
        contradict(
            first,
            second,
            "a remote agent is shown one credential; leave one out, or write the second as a header: headers = { ... }",
        );
    }
    for (key, others) in NEEDS.iter().filter(|(key, _)| !agent.is_default(key)) {
        if !others.iter().any(|other| is_set(&other)) {
            let others = spelled(others);
            problems.push(problem(agent, key, &format!("is set without {others}; add that, or leave it out")));
        }
    }
    problems.extend(useless_without_tls(agent));
    problems
}

/// Takes secrets from the variables that the settings name, and checks what is there then.
pub fn read_variables(agent: &mut Configured<AgentConfig>, environment: &Environment) -> Vec<Problem> {
    if !matches!(agent.subject.kind, AgentKind::A2a | AgentKind::OpenAi) {
        return Vec::new();
    }
    let mut problems = Vec::new();
    for server in &mut agent.subject.openai.mcp_servers {
        match server.token.variable.as_deref().and_then(|name| environment.text(name)) {
            None => {}
            Some(Ok(text)) => server.token.value = Some(Secret::new(text)),
            Some(Err(words)) => problems.push(("mcp_servers", words)),
        }
    }
    for (key, input) in inputs(&mut agent.subject.remote) {
        match input.variable.as_deref().and_then(|name| environment.text(name)) {
            None => {}
            Some(Ok(text)) => input.value = Some(Secret::new(text)),
            Some(Err(words)) => problems.push((key, words)),
        }
    }
    let mut problems: Vec<Problem> = problems.into_iter().map(|(key, words)| of_secret(agent, key, &words)).collect();
    if problems.is_empty() {
        problems.extend(repeated_header(agent).or_else(|| invalid(agent)));
    }
    problems
}

/// The variables that the settings of this agent name.
pub fn variables(agent: &AgentConfig) -> impl Iterator<Item = &str> {
    let RemoteConfig { upstream, .. } = &agent.remote;
    let inputs = [&upstream.token, &upstream.api_key, &upstream.password, &upstream.oauth.client_secret];
    let tools = agent.openai.mcp_servers.iter().map(|server| &server.token);
    inputs.into_iter().chain(tools).filter_map(|input| input.variable.as_deref())
}

/// Warnings on credentials that anybody on the way can read.
pub fn unencrypted(config: &Config) -> Vec<String> {
    let mut warnings = Vec::new();
    for agent in config.all_agents().filter(|agent| upstream::shows_secret(&agent.remote.upstream)) {
        let RemoteConfig { url, card_url, endpoint, upstream, .. } = &agent.remote;
        let mut urls = [url, card_url, endpoint, &upstream.oauth.token_url].into_iter().flatten();
        if let Some(url) = urls.find(|url| is_readable(url)) {
            warnings
                .push(format!("agent {} shows its credentials to {url} without encryption; use https://", agent.id));
        }
    }
    for agent in config.all_agents() {
        for server in agent.openai.mcp_servers.iter().filter(|server| server.shows_secret()) {
            if let Some(url) = server.url.as_deref().filter(|url| is_readable(url)) {
                let (id, name) = (&agent.id, &server.name);
                warnings.push(format!(
                    "agent {id} shows the credential of its MCP server {name} to {url} without encryption; use https://"
                ));
            }
        }
    }
    warnings
}

fn is_readable(url: &str) -> bool {
    let is_this_machine = |host: &Host| match host {
        Host::Name(name) => name == "localhost" || name.ends_with(".localhost"),
        Host::Address(address) => address.is_loopback(),
    };
    Target::parse(url).is_ok_and(|target| target.scheme == Scheme::Http && !is_this_machine(&target.host))
}

/// What no header, form or URL can carry.
fn invalid(agent: &Configured<AgentConfig>) -> Option<Problem> {
    let remote = &agent.subject.remote;
    let url = remote.url.as_deref()?;
    // A variable that is not set yet is for the start to refuse.
    let settings = upstream::credentials(&remote.upstream, &UpstreamTls::default()).ok()?;
    let InvalidCredentials { field, reason } = UpstreamCredentials::new(settings, &[url]).err()?;
    Some(match field {
        "token" => of_secret(agent, "token", &reason),
        "value" => of_secret(agent, "api_key", &reason),
        "password" => of_secret(agent, "password", &reason),
        "name" => problem(agent, "api_key_name", &reason),
        "user" => problem(agent, "user", &reason),
        "token_url" => problem(agent, "oauth_token_url", &reason),
        "client_id" => problem(agent, "oauth_client_id", &reason),
        _ => problem(agent, "headers", &reason),
    })
}

/// The header that a credential needs, written a second time.
fn repeated_header(agent: &Configured<AgentConfig>) -> Option<Problem> {
    let upstream = &agent.subject.remote.upstream;
    let key = KINDS.iter().find_map(|keys| keys.iter().find(|key| !agent.is_default(key)))?;
    let taken = match (key.starts_with("api_key"), upstream.api_key_in) {
        (false, _) => "authorization",
        (true, ApiKeyPlace::Header) => &upstream.api_key_name,
        (true, ApiKeyPlace::Cookie) => "cookie",
        (true, ApiKeyPlace::Query) => return None,
    };
    let (name, _) = upstream.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(taken))?;
    let words = format!("sets {name}, and so does {}; leave one of them out", name_of(agent, key));
    Some(problem(agent, "headers", &words))
}

/// Certificates where nothing is dialled that has any.
fn useless_without_tls(agent: &Configured<AgentConfig>) -> Vec<Problem> {
    let RemoteConfig { url, card_url, endpoint, upstream, .. } = &agent.subject.remote;
    let urls = [url, card_url, endpoint, &upstream.oauth.token_url];
    let is_https = |url: &String| Target::parse(url).is_ok_and(|target| target.scheme == Scheme::Https);
    if url.is_none() || urls.into_iter().flatten().any(is_https) {
        return Vec::new();
    }
    let keys = ["client_certificate", "ca"].into_iter().filter(|key| !agent.is_default(key));
    let words = format!("has no use: it is for https://, and {} begins with http://", name_of(agent, url_key(agent)));
    keys.map(|key| problem(agent, key, &words)).collect()
}

/// The setting that says where the server is.
fn url_key(agent: &Configured<AgentConfig>) -> &'static str {
    if agent.subject.kind == AgentKind::OpenAi { "base_url" } else { "url" }
}

fn inputs(remote: &mut RemoteConfig) -> [(&'static str, &mut SecretInput); 4] {
    let upstream = &mut remote.upstream;
    [
        ("token", &mut upstream.token),
        ("api_key", &mut upstream.api_key),
        ("password", &mut upstream.password),
        ("oauth_client_secret", &mut upstream.oauth.client_secret),
    ]
}

/// On a secret that does not fit, where it was written down or named.
fn of_secret(agent: &Configured<AgentConfig>, key: &'static str, words: &str) -> Problem {
    let by_variable = format!("{key}_env");
    match agent.value(&by_variable).value.as_str() {
        Some(name) => problem(agent, &by_variable, &format!("names {name}, whose value {words}")),
        None => problem(agent, key, words),
    }
}

fn problem(agent: &Configured<AgentConfig>, key: &str, words: &str) -> Problem {
    Problem::of(&agent.value(key).origin, key, words)
}

/// A setting as the operator wrote it: its key in the file, or a flag or variable.
fn name_of(agent: &Configured<AgentConfig>, key: &str) -> String {
    match &agent.value(key).origin {
        ValueOrigin::File { .. } | ValueOrigin::Default => key.to_owned(),
        origin => origin.to_string(),
    }
}

/// `a, b or c`
fn spelled(keys: &[&str]) -> String {
    match keys {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [others @ .., last] => format!("{} or {last}", others.join(", ")),
    }
}

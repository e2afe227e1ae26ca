//! The one agent of `sabir proxy`: what its flags and its variable say, as settings of an agent of kind `a2a`.

use std::ffi::OsString;

use crate::cli::RemoteOptions;

use super::agent_settings::AGENT_SETTINGS;
use super::environment::{Environment, UPSTREAM_TOKEN};
use super::origin::{Configured, Problem, Problems, ValueOrigin};
use super::programs;
use super::raw::{Raw, RawEntry, RawTable};
use super::sections::AgentConfig;
use super::settings::row_of;
use super::upstream_credentials;

/// Its id, by which paths and tasks name it.
pub const ID: &str = "remote";

/// A remote agent that only these flags and this environment describe.
pub fn remote_agent<N: Into<OsString>, V: Into<OsString>>(
    options: &RemoteOptions,
    environment: impl IntoIterator<Item = (N, V)>,
) -> Result<AgentConfig, Problems> {
    let environment = Environment::new(environment);
    let mut problems = Vec::new();
    let mut agent = proxy_agent(options, &environment, &mut problems);
    problems.extend(programs::complete(&mut agent));
    problems.extend(upstream_credentials::read_variables(&mut agent, &environment));
    Problems::check(problems)?;
    Ok(agent.subject)
}

/// Not checked yet as a whole.
pub fn proxy_agent(
    options: &RemoteOptions,
    environment: &Environment,
    problems: &mut Vec<Problem>,
) -> Configured<AgentConfig> {
    let (values, wrong) = given_values(options, environment);
    let mut agent = Configured::new(AgentConfig::default(), &AGENT_SETTINGS);
    problems.extend(wrong);
    for (key, raw, origin) in values {
        problems.extend(agent.set(row_of(&AGENT_SETTINGS, key), &raw, origin).err());
    }
    agent
}

/// Keys with their values and where those come from, and what is wrong already.
fn given_values(
    options: &RemoteOptions,
    environment: &Environment,
) -> (Vec<(&'static str, Raw, ValueOrigin)>, Vec<Problem>) {
    let text = |text: &String| Raw::Text(text.clone());
    let mut problems = Vec::new();
    let mut values = vec![
        ("id", Raw::untyped(ID), ValueOrigin::Flag("proxy")),
        ("kind", Raw::untyped("a2a"), ValueOrigin::Flag("proxy")),
        ("url", text(&options.url), ValueOrigin::Flag("URL")),
    ];
    for (key, flag, value) in [
        ("card_url", "--card-url", &options.card_url),
        ("endpoint", "--endpoint", &options.endpoint),
        ("a2a_version", "--a2a-version", &options.a2a_version),
    ] {
        values.extend(value.as_ref().map(|value| (key, text(value), ValueOrigin::Flag(flag))));
    }
    if !options.transport.is_empty() {
        let list = Raw::List(options.transport.iter().map(text).collect());
        values.push(("transports", list, ValueOrigin::Flag("--transport")));
    }
    let variable = || ValueOrigin::Variable(UPSTREAM_TOKEN.to_owned());
    match (&options.bearer, environment.text(UPSTREAM_TOKEN)) {
        (Some(token), _) => values.push(("token", text(token), ValueOrigin::Flag("--bearer"))),
        (None, Some(Ok(token))) => values.push(("token", Raw::untyped(token), variable())),
        (None, Some(Err(words))) => problems.push(Problem::of(&variable(), "token", &words)),
        (None, None) => {}
    }
    // What is malformed may be a secret, so it is not repeated.
    let malformed = |flag| {
        let words = "does not fit; expected NAME:VALUE, such as X-API-Key:abc";
        Problem::of(&ValueOrigin::Flag(flag), "", words)
    };
    match options.api_key.as_deref().map(named_value) {
        None => {}
        Some(None) => problems.push(malformed("--api-key")),
        Some(Some((name, value))) => {
            let flag = || ValueOrigin::Flag("--api-key");
            values.push(("api_key", Raw::untyped(value), flag()));
            values.push(("api_key_name", Raw::untyped(name), flag()));
        }
    }
    let headers: Option<Vec<RawEntry>> = options.header.iter().map(|header| entry(header)).collect();
    match headers {
        None => problems.push(malformed("--header")),
        Some(entries) if entries.is_empty() => {}
        Some(entries) => {
            let table = Raw::Table(RawTable { line: 0, entries });
            values.push(("headers", table, ValueOrigin::Flag("--header")));
        }
    }
    (values, problems)
}

fn entry(header: &str) -> Option<RawEntry> {
    let (name, value) = named_value(header)?;
    Some(RawEntry { key: name.to_owned(), line: 0, value: Raw::untyped(value) })
}

/// `NAME:VALUE`, with blanks around both.
fn named_value(text: &str) -> Option<(&str, &str)> {
    let (name, value) = text.split_once(':')?;
    let (name, value) = (name.trim(), value.trim());
    (!name.is_empty() && !value.is_empty()).then_some((name, value))
}

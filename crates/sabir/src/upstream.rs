//! The settings of a remote agent, or of a model behind a server, as the client for it wants them. Certificates are read here; token files are read by the
//! client, each time that it needs them.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use sabir_agents::openai::{HistoryLimits, OpenAiSettings};
use sabir_agents::{ToolServerSettings, Transport};
use sabir_outbound::client::UnusableIdentity;
use sabir_outbound::credentials::{
    ApiKey, ApiKeyPlace, Authentication, ClientAuthentication, ClientCredentials, CredentialSettings, OauthClient,
    RequestedAccess, Secret, TokenEndpoint, TokenExchange, TokenInput,
};
use sabir_outbound::remote::{Discovered, Remote, RemoteError, RemoteSettings};
use sabir_outbound::{ClientIdentity, Roots, Service, ServiceError, ServiceSettings};

use crate::config::{
    AgentConfig, McpServerConfig, OauthClientAuth, OpenAiConfig, RemoteConfig, SecretInput, UpstreamConfig,
    UpstreamOauth,
};
use crate::machine::Machine;

/// What is shown and trusted in TLS.
#[derive(Clone, Default)]
pub struct UpstreamTls {
    pub identity: Option<ClientIdentity>,
    pub roots: Roots,
}

/// A setting that names something which is not there, or cannot be used. The words follow the name of the setting.
#[derive(Debug)]
pub struct UnusableSetting {
    pub key: &'static str,
    pub words: String,
}

impl fmt::Display for UnusableSetting {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.key, self.words)
    }
}

impl std::error::Error for UnusableSetting {}

/// The configuration has checked that the settings go together and that there is an address.
pub fn remote_settings(config: &RemoteConfig, machine: &Machine) -> Result<RemoteSettings, UnusableSetting> {
    let tls = read_tls(&config.upstream, machine)?;
    let credentials = credentials(&config.upstream, &tls)?;
    Ok(RemoteSettings {
        card_url: config.card_url.clone(),
        endpoint: config.endpoint.clone(),
        version: config.version,
        bindings: config.transports.clone(),
        tenant: config.tenant.clone(),
        credentials,
        identity: tls.identity,
        roots: tls.roots,
        ..RemoteSettings::new(config.url.clone().unwrap_or_default()).unreachable_after(config.unreachable_timeout)
    })
}

/// The card of a remote agent and how it is called, for somebody who waits for it.
pub fn discover(config: &RemoteConfig, machine: &Machine) -> anyhow::Result<Result<Arc<Discovered>, RemoteError>> {
    let settings = RemoteSettings { call_timeout: CARD_TIMEOUT, ..remote_settings(config, machine)? };
    let remote = Remote::new(settings)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    Ok(runtime.block_on(remote.discover()))
}

/// Nobody waits longer before a screen that stays empty.
const CARD_TIMEOUT: Duration = Duration::from_secs(10);

/// What a start would find missing: variables, certificates, token files.
pub fn check(config: &RemoteConfig, machine: &Machine) -> Result<(), UnusableSetting> {
    remote_settings(config, machine)?;
    let upstream = &config.upstream;
    for (key, path) in
        [("token_file", &upstream.token_file), ("oauth_subject_token_file", &upstream.oauth.subject_token_file)]
    {
        let Some(path) = path else { continue };
        TokenInput::File(machine.absolute(path)).check().map_err(|error| UnusableSetting {
            key,
            words: format!("cannot be used: {error}; write the token there, or name another file"),
        })?;
    }
    Ok(())
}

/// Whether requests have something in them that others should not read. A certificate is nothing of the kind.
pub fn shows_secret(config: &UpstreamConfig) -> bool {
    let has = |input: &SecretInput| input.value.is_some() || input.variable.is_some();
    let fixed = has(&config.token) || has(&config.api_key) || has(&config.password);
    fixed || config.token_file.is_some() || config.oauth.token_url.is_some() || !config.headers.is_empty()
}

/// An error is a variable that is not set.
pub fn credentials(config: &UpstreamConfig, tls: &UpstreamTls) -> Result<CredentialSettings, UnusableSetting> {
    let headers = config.headers.iter().map(|(name, value)| (name.clone(), Secret::new(value.as_str())));
    Ok(CredentialSettings { authentication: authentication(config, tls)?, headers: headers.collect() })
}

fn authentication(config: &UpstreamConfig, tls: &UpstreamTls) -> Result<Authentication, UnusableSetting> {
    if let Some(file) = &config.token_file {
        return Ok(Authentication::Bearer(TokenInput::File(file.clone())));
    }
    if let Some(token) = secret("token_env", &config.token)? {
        return Ok(Authentication::Bearer(TokenInput::Text(token)));
    }
    if let Some(value) = secret("api_key_env", &config.api_key)? {
        let key = ApiKey { place: config.api_key_in, name: config.api_key_name.clone(), value };
        return Ok(Authentication::ApiKey(key));
    }
    if let (Some(user), Some(password)) = (&config.user, secret("password_env", &config.password)?) {
        return Ok(Authentication::Basic { user: user.clone(), password });
    }
    match &config.oauth.token_url {
        Some(url) => oauth(&config.oauth, url, tls),
        None => Ok(Authentication::None),
    }
}

fn oauth(config: &UpstreamOauth, url: &str, tls: &UpstreamTls) -> Result<Authentication, UnusableSetting> {
    let endpoint = TokenEndpoint { url: url.to_owned(), roots: tls.roots.clone(), identity: tls.identity.clone() };
    let secret = secret("oauth_client_secret_env", &config.client_secret)?;
    let authentication = match (secret, config.client_auth) {
        (None, _) => ClientAuthentication::IdOnly,
        (Some(secret), OauthClientAuth::Basic) => ClientAuthentication::SecretBasic(secret),
        (Some(secret), OauthClientAuth::Post) => ClientAuthentication::SecretPost(secret),
    };
    let client = config.client_id.clone().map(|id| OauthClient { id, authentication });
    let access = RequestedAccess {
        scopes: config.scopes.clone(),
        audiences: config.audience.clone(),
        resources: config.resource.clone(),
    };
    Ok(match (&config.subject_token_file, client) {
        (Some(file), client) => Authentication::TokenExchange(TokenExchange {
            endpoint,
            subject: TokenInput::File(file.clone()),
            subject_token_type: config.subject_token_type.clone(),
            requested_token_type: None,
            client,
            access,
        }),
        (None, Some(client)) => Authentication::ClientCredentials(ClientCredentials { endpoint, client, access }),
        // The configuration refuses it.
        (None, None) => Authentication::None,
    })
}

fn secret(key: &'static str, input: &SecretInput) -> Result<Option<Secret>, UnusableSetting> {
    match (&input.value, &input.variable) {
        (Some(value), _) => Ok(Some(Secret::new(value.as_str()))),
        (None, None) => Ok(None),
        (None, Some(name)) => {
            let words = format!("names {name}, which is not set in the environment of this process; set it there");
            Err(UnusableSetting { key, words })
        }
    }
}

fn read_tls(config: &UpstreamConfig, machine: &Machine) -> Result<UpstreamTls, UnusableSetting> {
    let mut tls = UpstreamTls::default();
    if let (Some(certificate), Some(key)) = (&config.client_certificate, &config.client_key) {
        let pem = read("client_certificate", certificate, machine)?;
        let key_pem = read("client_key", key, machine)?;
        tls.identity = Some(ClientIdentity::from_pem(&pem, &key_pem).map_err(|error| {
            let (setting, file) = match error {
                UnusableIdentity::NoCertificate
                | UnusableIdentity::CertificateNotPem
                | UnusableIdentity::Certificate(_) => ("client_certificate", certificate),
                UnusableIdentity::NoKey
                | UnusableIdentity::KeyNotPem
                | UnusableIdentity::EncryptedKey
                | UnusableIdentity::Key(_)
                | UnusableIdentity::KeyOfAnother => ("client_key", key),
            };
            UnusableSetting { key: setting, words: format!("names {}, which cannot be used: {error}", file.display()) }
        })?);
    }
    if let Some(file) = &config.ca {
        let pem = read("ca", file, machine)?;
        tls.roots.add_pem(&pem).map_err(|error| UnusableSetting {
            key: "ca",
            words: format!("names {}, which cannot be used: {error}", file.display()),
        })?;
    }
    Ok(tls)
}

fn read(key: &'static str, path: &Path, machine: &Machine) -> Result<Vec<u8>, UnusableSetting> {
    std::fs::read(machine.absolute(path)).map_err(|error| {
        let why = match error.kind() {
            io::ErrorKind::NotFound => "does not exist".to_owned(),
            io::ErrorKind::PermissionDenied => "may not be read by this user".to_owned(),
            _ => format!("cannot be read: {error}"),
        };
        UnusableSetting { key, words: format!("names {}, which {why}; name a PEM file that is there", path.display()) }
    })
}

/// Longer texts are no instructions.
const LONGEST_PROMPT: usize = 1024 * 1024;

/// A model behind a server. The configuration has checked that there are an address and a model.
pub fn openai_settings(agent: &AgentConfig, machine: &Machine) -> anyhow::Result<OpenAiSettings> {
    let config = &agent.openai;
    let servers = config.mcp_servers.iter().map(|server| tool_server(server, config.tool_timeout, machine));
    Ok(OpenAiSettings {
        service: model_service(&agent.remote, machine)?,
        model: agent.program.model.clone().unwrap_or_default(),
        system_prompt: system_prompt(config, machine)?,
        temperature: config.temperature,
        max_tokens: config.max_tokens,
        history: HistoryLimits { messages: config.history_messages, bytes: config.history_size },
        answer_timeout: config.answer_timeout,
        silence: config.silence_timeout,
        tool_servers: servers.collect::<anyhow::Result<_>>()?,
        max_tool_rounds: config.max_tool_rounds,
        asks_before_tools: config.approve_tools,
        approval_timeout: agent.program.approval_timeout,
    })
}

/// What a start would find missing for a model behind a server.
pub fn check_openai(agent: &AgentConfig, machine: &Machine) -> Vec<UnusableSetting> {
    let mut missing: Vec<UnusableSetting> = check(&agent.remote, machine).err().into_iter().collect();
    missing.extend(system_prompt(&agent.openai, machine).err());
    for server in &agent.openai.mcp_servers {
        let named = |words: String| UnusableSetting {
            key: "mcp_servers",
            words: format!("has the server {}, which {words}", server.name),
        };
        if let Err(error) = secret("mcp_servers", &server.token) {
            missing.push(named(format!("has token_env, which {}", error.words)));
        }
        let variable = server.command.first().map(|program| machine.find(program));
        if let Some(Err(absent)) = variable {
            missing.push(named(format!("runs {}, which {absent}; install it or correct the path", server.command[0])));
        }
    }
    missing
}

/// What the server of a model says to somebody who waits: the HTTP status of its list of models.
pub fn probe_models(config: &RemoteConfig, machine: &Machine) -> anyhow::Result<Result<u16, ServiceError>> {
    let service = model_service(config, machine)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    Ok(runtime.block_on(async { Ok(service.get("/models", CARD_TIMEOUT).await?.status.as_u16()) }))
}

fn model_service(config: &RemoteConfig, machine: &Machine) -> anyhow::Result<Service> {
    let mut upstream = config.upstream.clone();
    // By default the key is shown as a bearer token.
    if upstream.api_key_name.eq_ignore_ascii_case("authorization") && upstream.api_key_in == ApiKeyPlace::Header {
        let key = std::mem::take(&mut upstream.api_key);
        if key != SecretInput::default() {
            upstream.token = key;
        }
    }
    let tls = read_tls(&upstream, machine)?;
    Ok(Service::new(ServiceSettings {
        url: config.url.clone().unwrap_or_default(),
        credentials: credentials(&upstream, &tls)?,
        identity: tls.identity,
        roots: tls.roots,
        largest_answer: LARGEST_MODEL_ANSWER,
    })?)
}

const LARGEST_MODEL_ANSWER: usize = 16 * 1024 * 1024;

fn system_prompt(config: &OpenAiConfig, machine: &Machine) -> Result<Option<String>, UnusableSetting> {
    let Some(file) = &config.system_prompt_file else { return Ok(config.system_prompt.clone()) };
    let key = "system_prompt_file";
    let unusable = |why: &str| UnusableSetting { key, words: format!("names {}, which {why}", file.display()) };
    let bytes = read(key, file, machine)
        .map_err(|error| UnusableSetting { words: error.words.replace("a PEM file", "a file"), ..error })?;
    if bytes.len() > LONGEST_PROMPT {
        return Err(unusable("has more than 1 MiB; shorten it"));
    }
    let text = String::from_utf8(bytes).map_err(|_| unusable("is no text in UTF-8; convert it"))?;
    Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty()))
}

fn tool_server(server: &McpServerConfig, timeout: Duration, machine: &Machine) -> anyhow::Result<ToolServerSettings> {
    let transport = match &server.url {
        Some(url) => {
            let authentication = match secret("mcp_servers", &server.token)? {
                Some(token) => Authentication::Bearer(TokenInput::Text(token)),
                None => Authentication::None,
            };
            let headers = server.headers.iter().map(|(name, value)| (name.clone(), Secret::new(value.as_str())));
            Transport::Http(Service::new(ServiceSettings {
                url: url.clone(),
                credentials: CredentialSettings { authentication, headers: headers.collect() },
                identity: None,
                roots: Roots::default(),
                largest_answer: LARGEST_MODEL_ANSWER,
            })?)
        }
        None => {
            let mut command = server.command.clone();
            if let Some(program) = command.first_mut().filter(|program| program.contains('/')) {
                *program = machine.absolute(program.as_ref()).to_string_lossy().into_owned();
            }
            Transport::Program {
                command,
                environment: server.environment.clone(),
                pass: server.pass_environment.clone(),
                folder: machine.folder.clone(),
            }
        }
    };
    Ok(ToolServerSettings { name: server.name.clone(), transport, timeout })
}

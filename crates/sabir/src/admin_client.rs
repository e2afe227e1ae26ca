//! Admin calls of the command line: asks a running server, below `/admin/v1`.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{anyhow, bail};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use sabir_outbound::{
    Client, DialError, EgressPolicy, Guard, Limits, OpenResponse, Request, Response, Roots, SystemResolver, Target,
};
use serde_json::Value;

use crate::cli::{CliOptions, RunningServer};
use crate::local_server::{self, Load, LocalServer};
use crate::terminal_text::visible;

/// A server on the same machine answers sooner, or not at all.
const TIMEOUT: Duration = Duration::from_secs(30);
/// A page of a thousand deliveries, each with a URL of up to 4 KiB, is the largest answer.
const LARGEST_ANSWER: usize = 16 << 20;

/// Calls of one server.
pub struct AdminClient {
    client: Client,
    base: String,
    /// What the server is shown, if it asks for credentials.
    authorization: Option<HeaderValue>,
}

impl AdminClient {
    pub fn new(server: &RunningServer, load: Load) -> anyhow::Result<Self> {
        let local = match &server.url {
            Some(url) => LocalServer { url: url.trim_end_matches('/').to_owned(), roots: Roots::default() },
            None => local_server::find(&CliOptions { config: server.config.clone(), ..CliOptions::default() }, load)?,
        };
        Self::of(local, server.token.as_deref())
    }

    /// Calls of this server.
    pub fn of(LocalServer { url, roots }: LocalServer, token: Option<&str>) -> anyhow::Result<Self> {
        let target = Target::parse(&url).map_err(|error| anyhow!("cannot ask {url}: {error}"))?;
        // The operator wrote this address; nothing else can be dialled with this client.
        let mut policy = EgressPolicy::default();
        policy.trust(target.host, target.port);
        let guard = Guard::new(policy, Arc::new(SystemResolver::default()));
        let limits = Limits { body: LARGEST_ANSWER, ..Limits::default() };
        let authorization = token.map(authorization).transpose()?;
        Ok(AdminClient { client: Client::new(Arc::new(guard), limits, roots), base: url, authorization })
    }

    /// `below` is the path below `/admin/v1/`, with its query.
    pub async fn call(&self, method: &str, below: &str) -> anyhow::Result<Value> {
        self.call_within(method, below, TIMEOUT).await
    }

    /// The same for what may take longer.
    pub async fn call_within(&self, method: &str, below: &str, timeout: Duration) -> anyhow::Result<Value> {
        let request = self.request(method, below, timeout);
        let response = self.client.send(request).await.map_err(|error| self.unreachable(&error))?;
        self.read(response)
    }

    /// Begins to read an answer that is a stream.
    pub async fn open(&self, below: &str) -> anyhow::Result<OpenResponse> {
        let request = self.request("GET", below, TIMEOUT);
        let response = self.client.open(request).await.map_err(|error| self.unreachable(&error))?;
        match response.status.is_success() {
            true => Ok(response),
            false => {
                let refusal = response.complete(TIMEOUT).await.map_err(|error| self.unreachable(&error))?;
                self.read(refusal)?;
                bail!(self.strange("no stream"))
            }
        }
    }

    /// Posts to a path of the server, and hands out the response as it comes, whatever its status.
    pub async fn post(
        &self,
        path: &str,
        headers: HeaderMap,
        body: Bytes,
        timeout: Duration,
    ) -> Result<OpenResponse, DialError> {
        let mut request = Request::post(format!("{}{path}", self.base), headers, body, timeout);
        request.headers.extend(self.authorization.clone().map(|value| (header::AUTHORIZATION, value)));
        self.client.open(request).await
    }

    /// The status of `/readyz`, and what it says.
    pub async fn readiness(&self) -> anyhow::Result<(u16, String)> {
        let request = Request::get(format!("{}/readyz", self.base), TIMEOUT);
        let response = self.client.send(request).await.map_err(|error| anyhow!("{error}"))?;
        Ok((response.status.as_u16(), String::from_utf8_lossy(&response.body).trim().to_owned()))
    }

    fn request(&self, method: &str, below: &str, timeout: Duration) -> Request {
        let mut request = Request::get(format!("{}/admin/v1/{below}", self.base), timeout);
        request.method = method.parse().expect("a method of HTTP");
        request.headers.extend(self.authorization.clone().map(|value| (header::AUTHORIZATION, value)));
        request
    }

    /// What to do where the server does not answer.
    pub fn unreachable(&self, error: &DialError) -> anyhow::Error {
        anyhow!(
            "cannot ask the server at {}: {error}; start one with `sabir serve`, or give its URL with --url",
            self.base
        )
    }

    fn read(&self, response: Response) -> anyhow::Result<Value> {
        let body: Value = serde_json::from_slice(&response.body).unwrap_or_default();
        match (response.status.as_u16(), body["detail"].as_str()) {
            (200..300, _) if body.is_object() => Ok(body),
            (401, Some(detail)) => bail!("{}; give a token with the scope admin as SABIR_TOKEN", visible(detail)),
            (_, Some(detail)) => bail!("{}", visible(detail)),
            _ => bail!(self.strange(response.status.as_str())),
        }
    }

    /// The status of the answer to `GET` of this path, and its body; null where that is no JSON.
    pub async fn get(&self, path: &str, timeout: Duration) -> anyhow::Result<(u16, Value)> {
        let response = self.client.send(Request::get(format!("{}{path}", self.base), timeout)).await;
        let response = response.map_err(|error| anyhow!("cannot ask the server at {}: {error}", self.base))?;
        Ok((response.status.as_u16(), serde_json::from_slice(&response.body).unwrap_or_default()))
    }

    /// Without a slash at the end.
    pub fn base(&self) -> &str {
        &self.base
    }

    pub fn strange(&self, what: &str) -> String {
        format!("the server at {} answered {what}; is it a Sabir of this version?", self.base)
    }
}

fn authorization(token: &str) -> anyhow::Result<HeaderValue> {
    let value = HeaderValue::try_from(format!("Bearer {}", token.trim()));
    let mut value = value.map_err(|_| anyhow!("the token has characters that a header cannot carry"))?;
    value.set_sensitive(true);
    Ok(value)
}

/// Percent-encoded for a query.
pub fn encoded(text: &str) -> String {
    let letter = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(letter).collect()
}

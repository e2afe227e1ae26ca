//! A token endpoint on a loopback port, and credentials that ask it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use http::header;
use sabir_outbound::client::Request;
use sabir_outbound::credentials::{
    Authentication, ClientCredentials, CredentialError, CredentialSettings, OauthClient, RequestedAccess, Secret,
    ShownToken, TokenEndpoint, UpstreamCredentials,
};
use tokio::io::AsyncWriteExt;
use tokio::sync::Semaphore;

use crate::support::{LONG, Receiver, closing};

pub const UPSTREAM: &str = "https://upstream.example/a2a";

/// An endpoint that issues the tokens `t1`, `t2` and so on, or answers what a test says.
pub struct Endpoint {
    pub receiver: Receiver,
    gate: Arc<Semaphore>,
}

impl Endpoint {
    /// Tokens live for this many seconds.
    pub async fn issuing(lifetime: u32) -> Self {
        let endpoint = Self::issuing_later(lifetime).await;
        endpoint.open();
        endpoint
    }

    /// Nobody gets a token before `open`.
    pub async fn issuing_later(lifetime: u32) -> Self {
        let issued = AtomicUsize::new(0);
        Self::behaving(move || {
            let number = issued.fetch_add(1, Ordering::SeqCst) + 1;
            response(200, &format!(r#"{{"access_token":"t{number}","token_type":"Bearer","expires_in":{lifetime}}}"#))
        })
        .await
    }

    pub async fn answering(status: u16, body: &str) -> Self {
        let answer = response(status, body);
        let endpoint = Self::behaving(move || answer.clone()).await;
        endpoint.open();
        endpoint
    }

    async fn behaving(answer: impl Fn() -> String + Send + Sync + 'static) -> Self {
        let (answer, gate) = (Arc::new(answer), Arc::new(Semaphore::new(0)));
        let closed = Arc::clone(&gate);
        let receiver = Receiver::behaving("127.0.0.1:0", move |mut stream, _| {
            let (answer, gate) = (Arc::clone(&answer), Arc::clone(&closed));
            async move {
                let _place = gate.acquire().await.unwrap();
                let _ = stream.write_all(answer().as_bytes()).await;
                let _ = stream.shutdown().await;
            }
        })
        .await;
        Endpoint { receiver, gate }
    }

    pub fn open(&self) {
        self.gate.add_permits(1000);
    }

    pub fn url(&self) -> String {
        format!("http://{}/token", self.receiver.address)
    }

    pub fn requests(&self) -> usize {
        self.receiver.requests().len()
    }

    /// Client credentials that ask this endpoint.
    pub fn credentials(&self) -> UpstreamCredentials {
        credentials(Authentication::ClientCredentials(ClientCredentials {
            endpoint: TokenEndpoint::new(&self.url()),
            client: OauthClient::new("sabir", "geheim"),
            access: RequestedAccess::default(),
        }))
    }
}

pub fn response(status: u16, body: &str) -> String {
    closing(&format!("HTTP/1.1 {status} Status\r\ncontent-length: {}\r\n\r\n{body}", body.len()))
}

pub fn settings(authentication: Authentication, headers: &[(&str, &str)]) -> CredentialSettings {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), Secret::new(value))).collect();
    CredentialSettings { authentication, headers }
}

pub fn credentials(authentication: Authentication) -> UpstreamCredentials {
    UpstreamCredentials::new(settings(authentication, &[]), &[UPSTREAM]).unwrap()
}

/// The `Authorization` of a request that the upstream would get now.
pub async fn shown(credentials: &UpstreamCredentials) -> Result<(String, ShownToken), CredentialError> {
    let mut request = Request::get(UPSTREAM, LONG);
    let shown = credentials.authorize(&mut request).await?;
    let value = request.headers.get(header::AUTHORIZATION).expect("there is a token");
    assert!(value.is_sensitive());
    Ok((value.to_str().unwrap().to_owned(), shown))
}

pub async fn shown_text(credentials: &UpstreamCredentials) -> String {
    shown(credentials).await.unwrap().0
}

/// What the upstream would see when it would no longer see `before`.
pub async fn shown_after(credentials: &UpstreamCredentials, before: &str) -> String {
    let deadline = Instant::now() + LONG;
    loop {
        let shown = shown_text(credentials).await;
        if shown != before {
            return shown;
        }
        assert!(Instant::now() < deadline, "{before} is still shown");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

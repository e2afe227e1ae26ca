//! `sabir health`: whether a running server can take work, as an exit code. Images without a shell check themselves with it.

use std::time::Duration;

use anyhow::{Context, bail};

use crate::admin_client::AdminClient;
use crate::cli::{HealthOptions, RunningServer};
use crate::config::Audience;
use crate::local_server::Load;
use crate::terminal_text::visible;

/// Whoever asks at intervals must not wait for long.
const TIMEOUT: Duration = Duration::from_secs(5);

/// What is printed if the server is ready; an error if it is not.
pub fn run(options: &HealthOptions, audience: Audience, load: Load) -> anyhow::Result<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    let named = RunningServer { url: options.url.clone(), token: None, config: options.config.clone() };
    let server = AdminClient::new(&named, load)?;
    let (status, answer) = runtime.block_on(server.get("/readyz", TIMEOUT))?;
    let word = answer["status"].as_str().map(visible);
    match (status, word) {
        (200, Some(word)) => Ok(match audience {
            Audience::Person => format!("{} is {word}\n", server.base()),
            Audience::Program => format!("{answer}\n"),
        }),
        (503, Some(word)) => bail!("the server at {} cannot take work: {word}", server.base()),
        _ => bail!(server.strange(&status.to_string())),
    }
}

//! The server of the client suites that lets nobody in without a credential, and speaks HTTPS with a certificate of an
//! authority that nobody knows yet.
//!
//! A suite is told of it in a JSON file: `url`, `authority` (a PEM file), `callers`, by name, each with the `scheme` of the
//! card that its `secret` is for, and the `provider` whose tokens count too.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::command;
use crate::identity_provider::IdentityProvider;
use crate::nodes::Launcher;
use crate::server::{ServerProcess, ServerVariant};

/// Name, scheme of the card, and what `sabir token new` is told of it.
const CALLERS: [(&str, &str, &[&str]); 4] = [
    ("alice", "bearer", &[]),
    ("bob", "bearer", &[]),
    ("robot", "apiKey", &["--api-key"]),
    ("reader", "bearer", &["--scope", "read"]),
];

pub struct SecuredServer {
    server: ServerProcess,
    provider: IdentityProvider,
    /// The file that tells a suite of it.
    pub description: PathBuf,
    /// The certificate that clients have to trust.
    pub authority: PathBuf,
}

impl SecuredServer {
    /// `provider` is the program of the identity provider.
    pub fn start(launcher: &Launcher, provider: &Path, log: &Path, temp: &Path) -> Result<Self> {
        let provider = IdentityProvider::start(provider)?;
        let mut configuration = format!(
            "[[auth.issuer]]\nissuer = {}\naudience = {}\n",
            provider.told["issuer"], provider.told["audience"]
        );
        let mut callers = json!({});
        for (name, scheme, arguments) in CALLERS {
            let made = command::output(Command::new(launcher.sabir()).args(["token", "new", name]).args(arguments))?;
            let made: Value = serde_json::from_str(&made).context("`sabir token new` printed no JSON")?;
            configuration += made["toml"].as_str().context("`sabir token new` printed no table")?;
            callers[name] = json!({"scheme": scheme, "secret": made["token"]});
        }
        let variant =
            ServerVariant { name: "secured-server", arguments: &["--dev-tls"], configuration: &configuration };
        let server = ServerProcess::start(launcher, &variant, log, temp)?;
        let authority = server.ready["ca"].as_str().context("a server with --dev-tls names its authority")?;
        let authority = PathBuf::from(authority);
        let description = temp.join("secured-server").join("suite.json");
        let told = json!({"url": server.url, "authority": authority, "callers": callers, "provider": provider.told});
        fs::write(&description, told.to_string())?;
        Ok(Self { server, provider, description, authority })
    }

    pub fn stop(self) -> Result<()> {
        self.server.stop()?;
        self.provider.stop()
    }
}

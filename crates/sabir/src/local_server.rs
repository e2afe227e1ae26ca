//! The server that client commands talk to when nobody names one: the one that runs with the store of the configuration,
//! whatever its address, or else the one that `serve` would start with it.

use anyhow::bail;
use sabir_outbound::Roots;

use crate::address_file::{self, StartedBy};
use crate::cli::CliOptions;
use crate::config::{Config, LoadedConfig, Problems, ServerSection};
use crate::dev_tls;
use crate::serve::reachable;

/// Reads the configuration.
pub type Load = fn(&CliOptions) -> Result<LoadedConfig, Problems>;

/// A server on this machine.
#[derive(Debug, Clone)]
pub struct LocalServer {
    /// Without a slash at the end.
    pub url: String,
    /// The authorities that a client of it trusts.
    pub roots: Roots,
}

/// Finds the server by the options that `serve` has: a configuration file, a store. It need not run: where no server has the
/// store, this is where one would be.
pub fn find(options: &CliOptions, load: Load) -> anyhow::Result<LocalServer> {
    let config = load(options)?.config;
    if let Some((server, _)) = running(&config)? {
        return Ok(server);
    }
    let mut roots = Roots::default();
    let url = configured_url(&config.server)?;
    if config.server.dev_tls {
        roots.add(dev_tls::authority_beside(config.store.local_file().as_deref())?.into())?;
    }
    Ok(LocalServer { url, roots })
}

/// The server that runs with the store of this configuration, and the command that it runs in.
pub fn running(config: &Config) -> anyhow::Result<Option<(LocalServer, StartedBy)>> {
    let Some(address) = config.store.local_file().as_deref().and_then(address_file::read) else { return Ok(None) };
    let mut roots = Roots::default();
    if let Some(file) = &address.authority {
        roots.add(dev_tls::read_authority(file)?.into())?;
    }
    Ok(Some((LocalServer { url: address.url, roots }, address.started_by)))
}

/// Where a server with these addresses is reached from its own machine.
pub fn configured_url(server: &ServerSection) -> anyhow::Result<String> {
    match server.listen.iter().find(|address| address.port() != 0).map(|address| reachable(*address)) {
        // Credentials go there, and a file in the current folder may have been written by anybody.
        Some(address) if !address.ip().is_loopback() => bail!(
            "no server runs with this store, and server.listen is {address}, which is another machine or leads there; \
             start one with `sabir serve`, or give its URL"
        ),
        Some(address) => Ok(format!("{}://{address}", server.scheme())),
        None => bail!(
            "no server runs with this store, and server.listen names no port; start one with `sabir serve`, or give its \
             URL"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_server_it_is_where_serve_would_listen() {
        for (listen, dev_tls, expected) in [
            (&["127.0.0.1:41242"][..], true, "https://127.0.0.1:41242"),
            (&["127.0.0.1:41242"], false, "http://127.0.0.1:41242"),
            (&["127.0.0.1:0", "[::1]:7"], false, "http://[::1]:7"),
            (&["0.0.0.0:80"], false, "http://127.0.0.1:80"),
            (
                &["127.0.0.1:0"],
                false,
                "no server runs with this store, and server.listen names no port; start one with `sabir serve`, or \
                 give its URL",
            ),
        ] {
            let listen = listen.iter().map(|address| address.parse().unwrap()).collect();
            let server = ServerSection { listen, dev_tls, ..ServerSection::default() };
            let url = configured_url(&server).unwrap_or_else(|error| error.to_string());
            assert_eq!(url, expected, "{:?}", server.listen);
        }
    }
}

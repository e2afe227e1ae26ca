//! The command line: our own options, then the command of `sabir` and its arguments.

use std::net::SocketAddr;
use std::path::PathBuf;

pub const HELP: &str = "usage: cluster --sabir PATH --nodes N --postgres URL [--local] -- serve ARGS...
The cards of the nodes name the balancer as their `public_url`, unless `--local` says otherwise. `--listen` is where the balancer listens. `--store sqlite:PATH` becomes a database of that Postgres, the same one for the same
file; any other store becomes a fresh database.";

pub struct Arguments {
    pub sabir: PathBuf,
    pub nodes: usize,
    /// The URL of a database, through which others are made.
    pub postgres: String,
    /// Whether clients are told the balancer's address. A server with a `public_url` is more careful with strangers.
    pub is_public: bool,
    /// The command: `serve`, or `proxy` and a URL.
    pub words: Vec<String>,
    pub listen: Vec<SocketAddr>,
    pub store: Option<String>,
    pub is_tls: bool,
    /// What every node gets as it is.
    pub others: Vec<String>,
}

impl Arguments {
    pub fn parse(words: impl Iterator<Item = String>) -> Option<Self> {
        let mut words = words;
        let mut arguments = Self {
            sabir: PathBuf::new(),
            nodes: 0,
            postgres: String::new(),
            is_public: true,
            words: Vec::new(),
            listen: Vec::new(),
            store: None,
            is_tls: false,
            others: Vec::new(),
        };
        loop {
            match words.next()?.as_str() {
                "--sabir" => arguments.sabir = words.next()?.into(),
                "--nodes" => arguments.nodes = words.next()?.parse().ok()?,
                "--postgres" => arguments.postgres = words.next()?,
                "--local" => arguments.is_public = false,
                "--" => break,
                _ => return None,
            }
        }
        arguments.parse_serve(words)?;
        let is_whole = arguments.nodes > 0 && !arguments.postgres.is_empty() && !arguments.sabir.as_os_str().is_empty();
        is_whole.then_some(arguments)
    }

    fn parse_serve(&mut self, words: impl Iterator<Item = String>) -> Option<()> {
        let mut words = words.peekable();
        while let Some(word) = words.next_if(|word| !word.starts_with('-')) {
            self.words.push(word);
        }
        while let Some(word) = words.next() {
            match word.as_str() {
                "--listen" => {
                    let addresses = words.next()?;
                    self.listen.extend(addresses.split(',').map(address).collect::<Option<Vec<_>>>()?);
                }
                "--port" => self.listen.push(address(&words.next()?)?),
                "--store" => self.store = Some(words.next()?),
                _ => {
                    self.is_tls |= word == "--dev-tls";
                    self.others.push(word);
                }
            }
        }
        if self.listen.is_empty() {
            self.listen.push(address("0")?);
        }
        (!self.words.is_empty()).then_some(())
    }
}

/// A port alone means loopback.
fn address(text: &str) -> Option<SocketAddr> {
    let port = text.strip_prefix(':').unwrap_or(text).parse().ok();
    port.map_or_else(|| text.parse().ok(), |port: u16| Some(SocketAddr::from(([127, 0, 0, 1], port))))
}

//! A server that is measured: ours on a store of its own, or the floor.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::command;

const STOP_LIMIT: Duration = Duration::from_secs(30);

pub struct MeasuredServer {
    pub url: String,
    child: Child,
}

/// What an acknowledged write survives.
#[derive(Clone, Copy, PartialEq)]
pub enum StoreDurability {
    /// A power cut: `synchronous=FULL`.
    Full,
    /// A killed process: `synchronous=NORMAL`.
    Normal,
}

impl MeasuredServer {
    /// Starts the program and waits for the line with its address.
    pub fn start(mut command: Command, log: &Path) -> Result<MeasuredServer> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(File::create(log)?);
        let mut child = command.spawn().context("the server cannot be started")?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("stdout is piped")).read_line(&mut line)?;
        let ready: Option<Value> = serde_json::from_str(&line).ok();
        match ready.as_ref().and_then(|ready| ready["url"].as_str()) {
            Some(url) => Ok(MeasuredServer { url: url.to_owned(), child }),
            None => {
                let _ = command::kill(&mut child);
                bail!("the server did not say where it is; the end of its log:{}", command::last_lines(log))
            }
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn stop(mut self) -> Result<()> {
        command::output(Command::new("sh").args(["-c", &format!("kill -TERM {}", self.pid())]))?;
        match command::wait(&mut self.child, Instant::now() + STOP_LIMIT)? {
            Some(_) => Ok(()),
            None => bail!("the server still ran {} s after SIGTERM", STOP_LIMIT.as_secs()),
        }
    }

    /// Asks for the card, once.
    pub fn card(&self) -> Result<()> {
        let authority = self.url.trim_start_matches("http://");
        let mut socket = TcpStream::connect(authority)?;
        write!(socket, "GET /.well-known/agent-card.json HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n")?;
        let mut reply = [0; 12];
        socket.read_exact(&mut reply)?;
        if &reply != b"HTTP/1.1 200" {
            bail!("the card is refused: {}", String::from_utf8_lossy(&reply));
        }
        Ok(())
    }

    /// Memory that is really there, in bytes.
    pub fn resident(&self) -> Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
        let kilobytes: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
        Ok(kilobytes * 1024)
    }
}

impl Drop for MeasuredServer {
    fn drop(&mut self) {
        // It may be gone already, and that is as good.
        let _ = command::kill(&mut self.child);
    }
}

/// `sabir serve` on this store, with nothing of our environment that could configure it.
pub fn serve(command: Command, store: &Path, durability: StoreDurability) -> Command {
    let mut command = serve_store(command, &format!("sqlite:{}", store.display()));
    command.env("SABIR_STORE_DURABILITY", if durability == StoreDurability::Full { "full" } else { "process" });
    command
}

/// The same on whatever store this names.
pub fn serve_store(mut command: Command, store: &str) -> Command {
    command.args(["serve", "--listen", "127.0.0.1:0", "--log-level", "warn", "--store", store]);
    command
        .env_clear()
        .envs(["PATH", "HOME", "TMPDIR"].iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    // The receiver of webhooks is the generator.
    command.env("PUSH_NOTIFICATION_ALLOWED_CIDRS", "127.0.0.0/8");
    command
}

/// A folder for stores, gone when it is dropped.
pub struct Folder(pub PathBuf);

impl Folder {
    /// Below the build results and not in the system's folder for temporary files, which may be no disk at all.
    pub fn new(target: &Path) -> Result<Folder> {
        let folder = target.join(format!("bench-{}", std::process::id()));
        fs::create_dir_all(&folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
        Ok(Folder(folder))
    }

    /// A store that is not there yet.
    pub fn fresh(&self, name: &str) -> PathBuf {
        for end in ["", "-wal", "-shm", ".lock"] {
            let _ = fs::remove_file(self.0.join(format!("{name}.db{end}")));
        }
        self.0.join(format!("{name}.db"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

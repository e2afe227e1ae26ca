//! What it costs a send that somebody watches: metrics, and traces that go to a collector.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

use anyhow::Result;

use crate::bench::machine::Core;
use crate::bench::measured_server::{self, MeasuredServer, StoreDurability};
use crate::bench::rows::Bench;
use crate::bench::table::TargetVerdict;

impl Bench {
    /// The same sends to a server without metrics, one with them, and one that also traces every call and run, in turns.
    pub fn observed(&mut self) -> Result<()> {
        let collector = collector()?;
        let without = self.watched("without-metrics", "[metrics]\nenabled = false\n", None)?;
        let metrics = self.watched("metrics", "", None)?;
        let traces = self.watched("traces", "", Some(&collector))?;
        for connections in [1, 16, 64] {
            let words = format!("--connections {connections}");
            let [without, metrics, traces] = self.in_turns([&without, &metrics, &traces], &words)?.map(|best| best.cpu);
            let plural = if connections == 1 { "" } else { "s" };
            for (name, cpu) in [("metrics", metrics), ("metrics and traces", traces)] {
                let printed = format!("{cpu:.1} us, {:+.1} us to {without:.1} us", cpu - without);
                let name = format!("send, {connections} connection{plural}, FULL, with {name}");
                self.put(&name, "", printed, None, TargetVerdict::Told);
            }
        }
        for server in [without, metrics, traces] {
            server.stop()?;
        }
        Ok(())
    }

    fn watched(&self, name: &str, config: &str, collector: Option<&str>) -> Result<MeasuredServer> {
        let file = self.folder.0.join(format!("{name}.toml"));
        std::fs::write(&file, config)?;
        let command = self.machine.command(Core::Server, &self.sabir);
        let mut command = measured_server::serve(command, &self.folder.fresh(name), StoreDurability::Full);
        command.arg("--config").arg(file);
        if let Some(collector) = collector {
            command.env("OTEL_EXPORTER_OTLP_ENDPOINT", collector);
        }
        MeasuredServer::start(command, &self.folder.0.join(format!("{name}.log")))
    }
}

/// Takes whatever is sent to it. Its address; it ends with this process.
fn collector() -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = format!("http://{}", listener.local_addr()?);
    std::thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            // A connection that breaks is made again.
            std::thread::spawn(move || take_all(socket).ok());
        }
    });
    Ok(address)
}

fn take_all(mut socket: TcpStream) -> std::io::Result<()> {
    let mut requests = BufReader::new(socket.try_clone()?);
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if requests.read_line(&mut line)? == 0 {
                return Ok(());
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
            if line == "\r\n" {
                break;
            }
        }
        std::io::copy(&mut requests.by_ref().take(length), &mut std::io::sink())?;
        socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 0\r\n\r\n")?;
    }
}

//! `sabir bench`: measures a server, shows how far it is, and prints what came out.

use std::io::{self, ErrorKind, IsTerminal, Write};
use std::time::Duration;

use anyhow::{Context, bail};
use sabir_bench::{Dialect, Options, Progress, Report, Workload};

use crate::cli::BenchOptions;

pub fn run(flags: &BenchOptions) -> anyhow::Result<()> {
    let options = options(flags);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    let mut line = ProgressLine { workload: options.workload, is_shown: io::stderr().is_terminal() };
    let report = runtime.block_on(sabir_bench::run(&options, &mut |progress| line.show(progress)));
    line.clear();
    let report = report?;
    print(&report, flags.json || !io::stdout().is_terminal())?;
    match (&report.first_wrong, report.wrong, report.operations) {
        (first, 1.., _) => {
            bail!("{} replies were wrong, the first: {}", report.wrong, first.as_deref().unwrap_or("unknown"))
        }
        (_, 0, 0) => bail!("nothing was measured; give it more time with --seconds"),
        _ => Ok(()),
    }
}

fn options(flags: &BenchOptions) -> Options {
    let workload = Workload::named(&flags.workload).expect("the command line takes only these names");
    Options {
        url: flags.url.clone(),
        workload,
        dialect: Dialect::named(&flags.dialect).expect("the command line takes only these names"),
        connections: flags.connections as usize,
        duration: Duration::from_secs_f64(flags.seconds),
        count: flags.count,
        chunks: flags.chunks.unwrap_or(match workload {
            Workload::Fanout => 1000,
            Workload::ListRunning | Workload::Stalled => 20_000,
            Workload::WakeUp => 20,
            _ => 100,
        }),
        readers: flags.readers as usize,
        other: flags.other.clone(),
        pid: flags.pid,
    }
}

/// One line on a terminal that is written over and over.
struct ProgressLine {
    workload: Workload,
    is_shown: bool,
}

impl ProgressLine {
    fn show(&mut self, Progress { done, elapsed }: Progress) {
        if self.is_shown {
            let (name, unit) = (self.workload.name(), self.workload.unit());
            let _ = write!(io::stderr(), "\r\x1b[K{name}: {done} {unit} in {:.0} s", elapsed.as_secs_f64());
        }
    }

    fn clear(&self) {
        if self.is_shown {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

fn print(report: &Report, as_json: bool) -> anyhow::Result<()> {
    let text = if as_json { format!("{}\n", serde_json::to_string(report)?) } else { report.table() };
    match io::stdout().write_all(text.as_bytes()) {
        // The reader has seen enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}

//! Events as they happen: one reader and many, those that do not read, and many streams on one connection.

use anyhow::{Context, Result};

use crate::bench::measured_server::StoreDurability;
use crate::bench::rows::{Bench, at_most};
use crate::bench::table::TargetVerdict;

impl Bench {
    pub fn stream(&mut self) -> Result<()> {
        let server = self.server(&self.folder.fresh("stream"), StoreDurability::Full)?;
        for chunks in [100, 1000] {
            let figures = self.best(&server, &format!("--workload stream --chunks {chunks} --connections 16"))?;
            let printed = format!("{:.2} us per event", figures.cpu);
            let target = "<= 4 us per event";
            self.put(&format!("stream of {chunks} chunks"), target, printed, None, at_most(figures.cpu, 4.0));
        }
        let figures = self.best(&server, "--workload stream --chunks 100 --connections 1")?;
        let first = figures.first_event_p50.context("no first event in the report")?;
        let printed = format!("{first:.0} us");
        self.put("stream, 1 connection: first event p50", "<= 300 us", printed, None, at_most(first, 300.0));
        server.stop()
    }

    pub fn fanout(&mut self) -> Result<()> {
        let server = self.server(&self.folder.fresh("fanout"), StoreDurability::Full)?;
        let figures = self.best(&server, "--workload fanout --readers 200 --chunks 1000")?;
        let printed = format!("{:.2} us per delivery, none lost", figures.cpu);
        let verdict = at_most(figures.cpu, 1.5);
        self.put("200 readers of one task, 1000 chunks", "<= 1.5 us per delivery", printed, None, verdict);
        server.stop()
    }

    pub fn stalled(&mut self) -> Result<()> {
        let server = self.server(&self.folder.fresh("stalled"), StoreDurability::Full)?;
        // Once: memory that the first readers have left is used again by the next ones.
        let figures = self.once(&server, "--workload stalled --readers 500 --chunks 20000")?;
        let each = figures.rss_per_stream.context("no memory per reader in the report")? as f64 / 1000.0;
        let alone = figures.alone_per_second.context("no rate without them in the report")?;
        let printed = format!("{each:.1} KB");
        self.put("500 readers that never read: RSS each", "<= 64 KB", printed, None, at_most(each, 64.0));
        let printed = format!("{:.0} events/s, {:.0}/s without them", figures.per_second, alone);
        self.put("a reader beside 500 that never read", "", printed, None, TargetVerdict::Told);
        server.stop()
    }

    pub fn open_streams(&mut self) -> Result<()> {
        let server = self.server(&self.folder.fresh("open"), StoreDurability::Full)?;
        // Once: memory that the first streams have left is used again by the next ones.
        let figures = self.once(&server, "--workload open-streams --connections 5000")?;
        let each = figures.rss_per_stream.context("no memory per stream in the report")? as f64 / 1000.0;
        let printed = format!("{each:.1} KB, all ended");
        self.put("5000 open streams: RSS each", "<= 20 KB", printed, None, at_most(each, 20.0));
        server.stop()
    }

    pub fn http2(&mut self) -> Result<()> {
        let server = self.server(&self.folder.fresh("http2"), StoreDurability::Full)?;
        let figures = self.once(&server, "--workload http2 --connections 500")?;
        let each = figures.rss_per_stream.context("no memory per stream in the report")? as f64 / 1000.0;
        let printed = format!("{each:.1} KB, all ended");
        self.put("500 streams on one HTTP/2 connection: RSS each", "<= 20 KB", printed, None, at_most(each, 20.0));
        let printed = format!("{:.1} ms", figures.p50 / 1e3);
        self.put("a cancel over that connection: p50", "<= 2 ms", printed, None, at_most(figures.p50, 2000.0));
        server.stop()
    }
}

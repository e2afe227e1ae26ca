//! What is read of tasks: one by its id, and pages of lists, among running tasks and among many.

use std::time::Instant;

use anyhow::Result;

use crate::bench::measured_server::StoreDurability;
use crate::bench::rows::{Bench, at_most};

impl Bench {
    pub fn get(&mut self) -> Result<()> {
        let server = self.server(&self.folder.fresh("get"), StoreDurability::Full)?;
        let live = self.best(&server, "--workload get-live --connections 16")?;
        self.cpu("get, live", live, 16.0);
        let stored = self.best(&server, "--workload get --connections 16")?;
        self.cpu("get, from the store", stored, 30.0);
        server.stop()
    }

    pub fn list_running(&mut self) -> Result<()> {
        let server = self.server(&self.folder.fresh("running"), StoreDurability::Full)?;
        let figures = self.once(&server, "--workload list-running --connections 4 --chunks 20000")?;
        let name = "list page of 50, 20 of them at work with 20000 events each";
        self.cpu(name, figures, 150.0);
        server.stop()
    }

    pub fn many_tasks(&mut self) -> Result<()> {
        let empty = self.server(&self.folder.fresh("empty"), StoreDurability::Full)?;
        let alone = self.best(&empty, "--connections 16")?;
        empty.stop()?;
        let store = self.folder.fresh("many");
        let mut there = 0;
        let mut first_list = None;
        for size in self.sizes.iter().copied() {
            let began = Instant::now();
            let filler = self.server(&store, StoreDurability::Normal)?;
            self.fill(&filler, size - there)?;
            filler.stop()?;
            there = size;
            println!("    {size} tasks after {:.0} s more", began.elapsed().as_secs_f64());

            let server = self.server(&store, StoreDurability::Full)?;
            let list = self.best(&server, "--workload list --connections 4")?;
            let flat = list.cpu / *first_list.get_or_insert(list.cpu);
            let printed = format!("{:.0} us, {flat:.2} times the first", list.cpu);
            let verdict = at_most(list.cpu, 150.0);
            let ratio = self.ratio(list.cpu);
            self.put(&format!("list page of 50, {size} tasks"), "<= 150 us, flat", printed, ratio, verdict);
            let newest = self.best(&server, "--workload list-newest --connections 4")?;
            self.cpu(&format!("list of the newest 50 again, {size} tasks"), newest, 150.0);
            server.stop()?;
            if size < 100_000 {
                continue;
            }
            let server = self.server(&store, StoreDurability::Full)?;
            let figures = self.best(&server, "--connections 16")?;
            server.stop()?;
            let share = figures.cpu / alone.cpu;
            let printed = format!("{:.1} us, {:+.0} % to {:.1} us", figures.cpu, (share - 1.0) * 100.0, alone.cpu);
            let target = "within 10 % of an empty store";
            let ratio = self.ratio(figures.cpu);
            self.put(&format!("send, {size} tasks stored"), target, printed, ratio, at_most(share, 1.1));
            let bytes = figures.rss.saturating_sub(alone.rss) as f64 / size as f64;
            let printed = format!("{bytes:.0} bytes");
            let name = format!("RSS per stored task, {size} tasks");
            self.put(&name, "<= 100 bytes", printed, None, at_most(bytes, 100.0));
        }
        Ok(())
    }
}

//! Messages and their answers: kinds of agents, durabilities, dialects.

use anyhow::{Context, Result};

use crate::bench::front::STORED_FIRST;
use crate::bench::generator::{self, Figures};
use crate::bench::machine::Core;
use crate::bench::measured_server::StoreDurability;
use crate::bench::rows::{Bench, at_least, at_most, compare};
use crate::bench::table::TargetVerdict;

impl Bench {
    pub fn send(&mut self) -> Result<()> {
        let floor = self.floor()?;
        for connections in [16, 64] {
            let figures = self.best(&floor, &format!("--connections {connections}"))?;
            let printed = format!("{:.1} us, {:.0}/s", figures.cpu, figures.per_second);
            self.put(
                &format!("floor (bare axum, fixed reply), {connections} connections"),
                "",
                printed,
                None,
                TargetVerdict::Told,
            );
            if connections == 16 {
                self.floor_cpu = Some(figures.cpu);
            }
        }
        floor.stop()?;
        for (durability, name, sixteen, one) in
            [(StoreDurability::Full, "FULL", 45.0, 350.0), (StoreDurability::Normal, "NORMAL", 38.0, 150.0)]
        {
            let server = self.server(&self.folder.fresh("send"), durability)?;
            let figures = self.best(&server, "--connections 16")?;
            self.cpu(&format!("send, 16 connections, {name}"), figures, sixteen);
            if durability == StoreDurability::Full {
                let figures = self.best(&server, "--connections 64")?;
                self.cpu("send, 64 connections, FULL", figures, 30.0);
                let verdict = at_least(figures.per_second, 30_000.0);
                let printed = format!("{:.0}/s", figures.per_second);
                self.put("send, 64 connections, FULL: rate", ">= 30000/s on one core", printed, None, verdict);
            }
            let figures = self.best(&server, "--connections 1")?;
            let verdict = at_most(figures.p50, one);
            let printed = format!("{:.0} us", figures.p50);
            self.put(&format!("send, 1 connection, {name}: p50"), &format!("<= {one:.0} us"), printed, None, verdict);
            server.stop()?;
        }
        Ok(())
    }

    /// The same sends without and with a webhook, in turns on one server. The receiver answers nothing, so what is measured is the
    /// cost before the delivery itself.
    pub fn webhook(&mut self) -> Result<()> {
        let server = self.server(&self.folder.fresh("webhook"), StoreDurability::Full)?;
        for connections in [1, 16, 64] {
            let mut all = [vec![], vec![]];
            for _ in 0..self.rounds {
                for (workload, figures) in ["send", "webhook"].iter().zip(&mut all) {
                    figures.push(self.once(&server, &format!("--workload {workload} --connections {connections}"))?);
                }
            }
            let [without, with] = all.map(|figures| generator::best(&figures).context("no round"));
            let (without, with) = (without?.cpu, with?.cpu);
            let name = format!("send with a webhook, {connections} connections, FULL");
            let printed = format!("{with:.1} us, {:+.1} us to {without:.1} us", with - without);
            self.put(&name, "<= 15 us more than without", printed, self.ratio(with), at_most(with - without, 15.0));
        }
        server.stop()
    }

    /// Agents that act by themselves start after the commit of their message; the demo agent need not. The same words
    /// to both kinds, in turns, so that what disturbs one disturbs the other.
    pub fn stored_first(&mut self) -> Result<()> {
        let at_once = self.server(&self.folder.fresh("at-once"), StoreDurability::Full)?;
        let stored_first = self.configured("stored-first", Core::Server, STORED_FIRST)?;

        for connections in [16, 64] {
            let words = format!("--connections {connections}");
            let [early, late] = self.in_turns([&at_once, &stored_first], &words)?;
            let printed = compare(late.cpu, early.cpu, "us");
            let ratio = self.ratio(late.cpu);
            let name = format!("send, {connections} connections, FULL, agent stored first");
            self.put(&name, "", printed, ratio, TargetVerdict::Told);
        }
        let [early, late] = self.in_turns([&at_once, &stored_first], "--connections 1")?;
        let printed = compare(late.p50, early.p50, "us");
        self.put("send, 1 connection, FULL, agent stored first: p50", "", printed, None, TargetVerdict::Told);
        let words = "--workload stream --chunks 100 --connections 1";
        let [early, late] = self.in_turns([&at_once, &stored_first], words)?;
        let first = |figures: Figures| figures.first_event_p50.context("no first event in the report");
        let printed = compare(first(late)?, first(early)?, "us");
        self.put("stream, 1 connection, agent stored first: first event p50", "", printed, None, TargetVerdict::Told);
        at_once.stop()?;
        stored_first.stop()
    }

    pub fn dialects(&mut self) -> Result<()> {
        let server = self.server(&self.folder.fresh("dialects"), StoreDurability::Full)?;
        let dialects = ["1.0", "0.3", "0.1", "rest", "gateway"];
        // In turns, so that what disturbs one disturbs all.
        let mut all = [const { vec![] }; 5];
        for _ in 0..self.rounds {
            for (dialect, figures) in dialects.iter().zip(&mut all) {
                figures.push(self.once(&server, &format!("--connections 16 --dialect {dialect}"))?);
            }
        }
        server.stop()?;
        let cpu: Vec<f64> = all.iter().filter_map(|figures| generator::best(figures)).map(|best| best.cpu).collect();
        for (dialect, own) in dialects.iter().zip(&cpu).skip(1) {
            let share = own / cpu[0];
            let printed = format!("{own:.1} us, {:+.0} % to {:.1} us", (share - 1.0) * 100.0, cpu[0]);
            let ratio = self.ratio(*own);
            self.put(&format!("send, dialect {dialect}"), "within 20 % of 1.0", printed, ratio, at_most(share, 1.2));
        }
        Ok(())
    }
}

//! A message through a front to a second server, beside the same message to an agent of the first.
//!
//! A front acts outside of its server, so it starts after its message is stored. What is comparable is a demo agent that is
//! told to do the same (`stored_first`).

use anyhow::Result;

use crate::bench::machine::Core;
use crate::bench::measured_server::{self, MeasuredServer, StoreDurability};
use crate::bench::rows::{Bench, at_most};

/// So many times the cost of a local send.
const MOST: f64 = 2.0;
const TARGET: &str = "<= 2 times a local send, agent stored first";

impl Bench {
    pub fn front(&mut self) -> Result<()> {
        // Beside the generator: the core of the server has nothing else to do, as with a local send.
        let upstream = self.configured("upstream", Core::Generator, "[[agent]]\nid = \"demo\"\nkind = \"demo\"\n")?;
        let front = format!("[[agent]]\nid = \"front\"\nkind = \"a2a\"\nurl = \"{}\"\n", upstream.url);
        let front = self.configured("front", Core::Server, &front)?;
        let local = self.configured("stored-first", Core::Server, STORED_FIRST)?;
        for connections in [1, 16] {
            let [here, there] = self.in_turns([&local, &front], &format!("--connections {connections}"))?;
            let plural = if connections == 1 { "" } else { "s" };
            let name = format!("send through a front, {connections} connection{plural}, FULL");
            for (name, here, there) in
                [(name.clone(), here.cpu, there.cpu), (format!("{name}: p50"), here.p50, there.p50)]
            {
                let printed = format!("{there:.1} us, {:.2} times {here:.1} us", there / here);
                self.put(&name, TARGET, printed, None, at_most(there / here, MOST));
            }
        }
        local.stop()?;
        front.stop()?;
        upstream.stop()
    }

    /// A server with this configuration, on a new store of this name.
    pub fn configured(&self, name: &str, core: Core, config: &str) -> Result<MeasuredServer> {
        let file = self.folder.0.join(format!("{name}.toml"));
        std::fs::write(&file, config)?;
        let store = self.folder.fresh(name);
        let mut command =
            measured_server::serve(self.machine.command(core, &self.sabir), &store, StoreDurability::Full);
        command.arg("--config").arg(file);
        MeasuredServer::start(command, &self.folder.0.join(format!("{name}.log")))
    }
}

/// A demo agent that starts after the commit of its message, as agents do that act by themselves.
pub const STORED_FIRST: &str = "[[agent]]\nid = \"demo\"\nkind = \"demo\"\nstored_first = true\n";

//! gRPC beside JSON-RPC on the same server, and what an open stream of it takes.
//!
//! JSON-RPC over HTTP/2 is measured with them: it tells what HTTP/2 costs from what gRPC adds. All three go in turns, so
//! that what disturbs one disturbs all.

use anyhow::{Context, Result};

use crate::bench::generator;
use crate::bench::measured_server::{MeasuredServer, StoreDurability};
use crate::bench::rows::{Bench, at_most, compare};
use crate::bench::table::TargetVerdict;

/// So many times the processor time of JSON-RPC over HTTP/1.1.
const MOST: f64 = 1.1;
const TARGET: &str = "<= 1.10 times JSON-RPC";
const STREAM_KILOBYTES: f64 = 10.0;

impl Bench {
    pub fn grpc(&mut self) -> Result<()> {
        let server = self.server(&self.folder.fresh("grpc"), StoreDurability::Full)?;
        for connections in [1, 16] {
            let plural = if connections == 1 { "" } else { "s" };
            let name = format!("{connections} connection{plural}, FULL");
            let words = format!("--connections {connections}");
            self.beside_json_rpc(
                &server,
                &format!("send over gRPC, {name}"),
                &format!("send over HTTP/2, {name}"),
                &words,
            )?;
        }
        let words = "--workload stream --chunks 100 --connections 16";
        self.beside_json_rpc(&server, "stream over gRPC, per event", "stream over HTTP/2, per event", words)?;
        server.stop()?;

        for streams in [1000, 3000] {
            // Each on a new server: memory that the first streams have left is used again by the next ones.
            let mut each = [0.0; 2];
            for (dialect, each) in ["1.0", "grpc"].iter().zip(&mut each) {
                let server = self.server(&self.folder.fresh("grpc-streams"), StoreDurability::Full)?;
                let words = format!("--workload http2 --connections {streams} --dialect {dialect}");
                let figures = self.once(&server, &words)?;
                *each = figures.rss_per_stream.context("no memory per stream in the report")? as f64 / 1000.0;
                server.stop()?;
            }
            let [json, grpc] = each;
            let name = format!("memory per open gRPC stream, {streams} on one HTTP/2 connection");
            let target = format!("<= {STREAM_KILOBYTES:.0} KB");
            self.put(&name, &target, compare(grpc, json, "KB"), None, at_most(grpc, STREAM_KILOBYTES));
        }
        Ok(())
    }

    /// The same work as JSON-RPC, as JSON-RPC over HTTP/2 and as gRPC.
    fn beside_json_rpc(&mut self, server: &MeasuredServer, grpc: &str, http2: &str, words: &str) -> Result<()> {
        let mut all = [const { vec![] }; 3];
        for _ in 0..self.rounds {
            for (dialect, figures) in ["1.0", "1.0-http2", "grpc"].iter().zip(&mut all) {
                figures.push(self.once(server, &format!("{words} --dialect {dialect}"))?);
            }
        }
        let [json, over_http2, of_grpc] = all.map(|figures| generator::best(&figures).context("no round"));
        let (json, over_http2, of_grpc) = (json?.cpu, over_http2?.cpu, of_grpc?.cpu);
        let times = |cpu: f64| format!("{cpu:.2} us, {:.2} times {json:.2} us", cpu / json);
        self.put(http2, "", times(over_http2), self.ratio(over_http2), TargetVerdict::Told);
        self.put(grpc, TARGET, times(of_grpc), self.ratio(of_grpc), at_most(of_grpc / json, MOST));
        Ok(())
    }
}

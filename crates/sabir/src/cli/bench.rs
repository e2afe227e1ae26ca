//! The command line of `bench`.

use clap::Args;
use clap::builder::PossibleValuesParser;
use sabir_bench::{Dialect, Workload};

/// The flags of `bench`.
#[derive(Debug, Clone, Args)]
pub struct BenchOptions {
    /// The server, such as http://127.0.0.1:41242
    pub url: String,

    /// What to do, over and over
    #[arg(long, value_name = "NAME", default_value = "send",
          value_parser = PossibleValuesParser::new(Workload::ALL.map(Workload::name)))]
    pub workload: String,

    /// How many connections do it at the same time; for open-streams and http2 how many streams
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub connections: u32,

    /// How long to measure, after a short warm-up
    #[arg(long, value_name = "S", default_value_t = 5.0, value_parser = positive)]
    pub seconds: f64,

    /// End after so many requests or streams instead, without a warm-up
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,

    /// The protocol version; 1.0-http2 is 1.0 over HTTP/2, rest 1.0 as HTTP+JSON, grpc 1.0 as gRPC on the same port,
    /// gateway the plain REST below /v1/a2a/agents
    #[arg(long, value_name = "NAME", default_value = "1.0",
          value_parser = PossibleValuesParser::new(Dialect::ALL.map(Dialect::name)))]
    pub dialect: String,

    /// How many chunks an answer of stream (default 100), fanout (1000), list-running, stalled (20000) or wake-up (20) has
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub chunks: Option<u64>,

    /// How many read the task of fanout, or do not read that of stalled
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub readers: u32,

    /// A second server on the same Postgres, for wake-up
    #[arg(long, value_name = "URL")]
    pub other: Option<String>,

    /// The server's process on this machine, to report its processor time and memory (Linux)
    #[arg(long, value_name = "PID")]
    pub pid: Option<u32>,

    /// Print JSON on a terminal too
    #[arg(long)]
    pub json: bool,
}

fn positive(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if seconds > 0.0 && seconds <= 86_400.0 { Ok(seconds) } else { Err("not between 0 and 86400".to_owned()) }
}

/// Below the flags of `bench`.
pub const BENCH_HELP: &str = "Examples:
  sabir bench http://127.0.0.1:41242
  sabir bench http://127.0.0.1:41242 --workload stream --chunks 1000 --connections 4
  sabir bench http://127.0.0.1:41242 --workload open-streams --connections 2000 --pid $(pidof sabir)
  sabir bench http://127.0.0.1:41242 --dialect grpc --workload stream
  sabir bench http://127.0.0.1:9999 --dialect 0.3 --seconds 10 | jq .per_second

Workloads:
  send          a message and its answer; at a gateway a message, and all runs are asked for at the end
  get           tasks that have ended, by id
  get-live      tasks that work while their stream is read, by id
  list          pages of 50 tasks, through the whole list (dialects 1.0 and rest)
  list-newest   the first page of 50 tasks, again and again (dialects 1.0 and rest)
  stream        a message whose answer comes in chunks; counts events
  fanout        all readers of one task get every chunk; counts deliveries
  open-streams  so many streams open at the same time, until each gets its end
  list-running  one page of 50 tasks, 20 of which have many chunks and still work (dialects 1.0 and rest)
  stalled       a task that streams to one reader, beside so many readers that never read; counts events
  http2         so many streams open on one HTTP/2 connection, and cancels over it, which are timed
  wake-up       so many tasks, each with a reader here and one at another server of the same Postgres (--other); its times are
                how much later the second one gets an event

The dialects 1.0-http2 and grpc have send, stream and http2. Each of their connections is one of HTTP/2, with one call at a time.

URL is where the card lies: /.well-known/agent-card.json is asked for below it. Any A2A server will do. One
whose agent echoes `echo: TEXT`, as the demo agent does, has its texts checked too. All workloads but send, get,
list and list-newest need such a server, since they use the words `stream N MS` and `slow S` of the demo agent. For others a
notice says what was not checked. The tasks stay on the server: use one for trials.

On a terminal it prints a table, in a pipe one JSON object. The exit code is 0 only if every reply was right.";

//! The command line of `doctor`.

use clap::Args;

use super::CliOptions;

#[derive(Debug, Clone, Args)]
pub struct DoctorOptions {
    #[command(flatten)]
    pub options: CliOptions,

    /// Ask no other machine: neither remote agents nor a Postgres
    #[arg(long)]
    pub offline: bool,

    /// Also start each configured program and ask it for a word, as `sabir agents --check` does. That may cost money
    #[arg(long)]
    pub ask_agents: bool,

    /// How long each check may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 15, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub timeout: u64,

    /// The bearer token to show to the server that runs here, if it asks for credentials. It needs the scope admin. Rather in
    /// the environment: others see command lines
    #[arg(long, value_name = "TOKEN", env = "SABIR_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
}

/// Below the flags of `doctor`.
pub const DOCTOR_HELP: &str = "Examples:
  sabir doctor
  sabir doctor --config /etc/sabir/sabir.toml
  sabir doctor --offline
  sabir doctor | jq -r '.findings[] | select(.level == \"problem\") | .what'

What is looked at, as `serve` with the same flags would use it:
  configuration  the file, the environment and the flags; names that are not known; settings that contradict each other
  store          whether it can be read and written, its format, damage, free space; the settings of a Postgres
  agents         whether their programs are installed, and which version; whether remote agents can be reached
  ports          whether they are free, or held by the server that runs with this store, or by somebody else
  clock          whether it runs, and whether it agrees with the database
  limits         open files, memory and processes, of this shell or of the server that runs
  certificates   whether they can be used, and when they expire
  server         whether the one that runs with this store is well: /readyz, its nodes, its limits
  webhooks       deliveries that fail or were given up

Nothing is changed, and no secret is printed. Each finding is `ok`, a `warning` (it works, but not for long, or not as you may think)
or a `problem`, and says what to do. On a terminal it prints lines, in a pipe one JSON object.

Exit codes: 0 no problem was found, 1 there is one, 2 the command line is wrong.";

//! `sabir completions`: a script by which a shell completes the command line.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::Cli;

pub fn script(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "sabir", &mut script);
    String::from_utf8(script).expect("names and help are text")
}

//! The command line of `completions` and `man`, which tell shells and people about all the others.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

/// The flags of `completions`.
#[derive(Debug, Clone, Args)]
pub struct CompletionsOptions {
    /// The shell that reads the script
    #[arg(value_name = "SHELL")]
    pub shell: Shell,
}

/// The flags of `man`.
#[derive(Debug, Clone, Args)]
pub struct ManOptions {
    /// Write the pages of all commands into this folder, which is made if it is not there
    #[arg(value_name = "DIR")]
    pub folder: Option<PathBuf>,
}

/// Below the flags of `completions`.
pub const COMPLETIONS_HELP: &str = "Examples:
  source <(sabir completions bash)
  sabir completions bash > ~/.local/share/bash-completion/completions/sabir
  sabir completions zsh > ~/.zfunc/_sabir
  sabir completions fish > ~/.config/fish/completions/sabir.fish
  sabir completions powershell >> $PROFILE
  sabir completions elvish > ~/.config/elvish/lib/sabir.elv

The script completes commands, flags and the values of flags that have a list of them. zsh finds it in a folder of its
fpath; elvish wants `use sabir` in its rc.elv. Write it again after an update of sabir.";

/// Below the flags of `man`.
pub const MAN_HELP: &str = "Examples:
  sabir man > sabir.1
  man <(sabir man)
  sabir man ~/.local/share/man/man1

Without a folder the page of sabir itself is printed. With one, a page for each command is written into it: sabir.1,
sabir-serve.1, sabir-push-list.1 and so on. A page that is there already is replaced.";

//! Programs as child processes: how they are started, read, and ended whatever happens.
//!
//! Between Sabir and a program stands a guard: this same binary, started again with one job. It holds one end of a socket
//! whose other end only Sabir has. When that end closes, because a `Child` was dropped or because Sabir itself was killed,
//! the guard ends the program and all that the program has started. So no child outlives Sabir. While a question is open
//! that the program would ask again after a kill, the guard uses SIGKILL alone (`Ending`). If a program has killed or
//! stopped its guard, Sabir ends the program itself (`leftovers`). In a cluster a guard also pauses its program when Sabir's
//! lease is over (`lease`, `pause`).

mod environment;
mod resolve;

mod deadline;
mod frames;
mod guard;
mod leftovers;
mod mark;
mod pause;
mod process_table;

mod child;
mod descendants;
mod guard_link;
mod launch;
mod lease;
mod lines;
mod stderr_tail;

pub use child::{Child, Output};
pub use descendants::{Descendants, SHOWS_DESCENDANTS};
pub use environment::environment;
pub use frames::Ending;
pub use guard::guard;
pub use launch::{Launch, LaunchError};
pub use lease::{lease_is_over, set_run_until};
pub use leftovers::{
    adopt_orphans, end_leftovers_of_dead_servers, end_programs, reap_orphans, until_leftovers_are_gone,
    until_no_program_runs,
};
pub use mark::MARK;

/// The first argument that makes `sabir` a guard.
pub const GUARD: &str = "__guard";

/// Option of the guard: the limit of open files.
const OPEN_FILES: &str = "--open-files";

/// Option of the guard: the mark for the program's environment.
const MARKED: &str = "--mark";

/// Option of the guard: the first deadline, in nanoseconds.
const RUN_UNTIL: &str = "--run-until";

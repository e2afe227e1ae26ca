//! Programs as child processes: started, heard, and ended whatever happens.
//!
//! Between Sabir and a program stands a guard: this same binary, started again with one job. It holds one end of a
//! socket whose other end only Sabir has. When that end closes, because a `Child` was dropped or because Sabir itself was
//! killed, the guard ends the program and all that the program has started. So no child outlives Sabir.

mod environment;
mod resolve;

mod frames;
mod guard;
mod kin;

mod child;
mod complaint;
mod launch;
mod lines;
mod steer;

pub use child::{Child, Output};
pub use environment::environment;
pub use guard::guard;
pub use launch::{Launch, LaunchError};

/// The first argument that makes `sabir` a guard.
pub const GUARD: &str = "__guard";

/// The guard lowers the limit of open files to the number that follows. A program is always a path, so none has this name.
const OPEN_FILES: &str = "--open-files";

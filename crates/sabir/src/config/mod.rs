//! The configuration: from a file, the environment and the command line to one typed `Config`.
//!
//! `settings` is the table of everything that can be set; the documentation, the unknown-key hints and
//! `sabir config` all read it. `layers` puts defaults, file, environment and flags on top of each other and
//! remembers where each value came from. Nothing outside `main` reads the process environment.

mod sections;
mod settings;

mod file;

mod borrowed;
mod environment;
mod flags;

mod agents;
mod exposure;
mod layers;
mod origin;
mod show;

mod kinds;
mod raw;

mod addresses;
mod duration;
mod log_filter;
mod nearest;
mod size;
mod store_url;
mod web_url;

#[cfg(test)]
mod tests;

pub use layers::{Loaded, Problems, load};
pub use sections::*;
pub use show::{Audience, show};

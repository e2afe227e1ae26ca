//! The configuration: from a file, the environment and the command line to one typed `Config`.
//!
//! `settings` and `agent_settings` are the tables of everything that can be set; the documentation, the
//! unknown-key hints and `sabir config` all read them. `layers` puts defaults, file, environment and flags on top
//! of each other and remembers where each value came from. Nothing outside `main` reads the process environment.

mod sections;
mod setting;

mod agent_settings;
mod settings;

mod file;
mod unknown;

mod borrowed;
mod environment;
mod flags;

mod agents;
mod described;
mod exposure;
mod layers;
mod origin;
mod presence;
mod programs;
mod routes;
mod show;

mod kinds;
mod raw;

mod addresses;
mod carried;
mod duration;
mod log_filter;
mod media_type;
mod nearest;
mod program_values;
mod quoted;
mod size;
mod store_url;
mod web_url;

#[cfg(test)]
mod tests;

pub use agents::default_of;
pub use layers::{Loaded, Problems, load};
pub use sections::*;
pub use show::{Audience, show};
pub use web_url::host_of as host_of_url;

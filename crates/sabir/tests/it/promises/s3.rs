//! The promises of a tutorial of protocol v0.1.

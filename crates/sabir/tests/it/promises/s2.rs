//! The promises of CodeTether.

//! The promises of protoAgent.

//! The promises of coding-agent-a2a.

//! The promises of tirea, a gateway.

//! The servers that Sabir is tested against as their client: built on official SDKs of other languages. A new one is a
//! new row, here and in `tests/servers/conformance.py`.

use crate::clients::{BOTH, CLIENTS, Client, JSON_RPC};

/// A program that takes `--port N --binding BINDING`, prints its address when it is ready, and ends with its input.
pub struct SdkServer {
    /// The SDK, by the name of the client suite: both run with the same packages.
    pub sdk: &'static str,
    /// The version of A2A that it speaks.
    pub protocol: &'static str,
    /// The program, in its language's folder below `tests/servers`.
    pub script: &'static str,
    pub bindings: &'static [&'static str],
}

impl SdkServer {
    pub fn client(&self) -> &'static Client {
        CLIENTS.iter().find(|client| client.name == self.sdk).expect("a test looks for the SDK of every server")
    }
}

pub const SDK_SERVERS: &[SdkServer] = &[
    SdkServer { sdk: "python-1.3.0", protocol: "1.0", script: "server_v1.py", bindings: BOTH },
    SdkServer { sdk: "python-0.3.26", protocol: "0.3", script: "server_v0_3.py", bindings: BOTH },
    SdkServer { sdk: "python-0.2.16", protocol: "0.2", script: "server_v0_2.py", bindings: JSON_RPC },
    SdkServer { sdk: "js-1.3.0", protocol: "1.0", script: "server_v1.mjs", bindings: BOTH },
    SdkServer { sdk: "js-0.3.14", protocol: "0.3", script: "server_v0_3.mjs", bindings: BOTH },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sdk_of_every_server_is_one_that_is_set_up() {
        for server in SDK_SERVERS {
            assert_eq!(server.client().name, server.sdk);
        }
    }
}

//! The client suites: official SDKs of other languages, and a generic client of gRPC, each talking to a real server. A new one is
//! a new row.

/// A suite that takes `--url URL --binding BINDING`, prints `ok - ...` or `not ok - ...` per case, and ends with
/// the line `N passed, N failed`.
pub struct Client {
    pub name: &'static str,
    pub kit: Kit,
    /// The version of the SDK, or what stands for it in the names of the files that lock its packages.
    pub version: &'static str,
    /// The program of the suite, in its language's folder below `tests/clients`.
    pub script: &'static str,
    pub bindings: &'static [&'static str],
    /// How large its folder is once it is installed, about.
    pub megabytes: u32,
}

/// What a suite or a server runs with: the packages that are locked for its version, in its language's folder below
/// `tests/clients`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kit {
    /// A virtual environment.
    Python,
    /// A folder of Node modules.
    Node,
}

impl Kit {
    /// The folder of the language, below `tests/clients` and `tests/servers`.
    pub fn language(self) -> &'static str {
        match self {
            Kit::Python => "python",
            Kit::Node => "js",
        }
    }
}

pub const ALL: &[&str] = &["jsonrpc", "http_json", "grpc"];
pub const BOTH: &[&str] = &["jsonrpc", "http_json"];
pub const JSON_RPC: &[&str] = &["jsonrpc"];
pub const GRPC: &[&str] = &["grpc"];

pub const CLIENTS: &[Client] = &[
    Client { name: "python-1.3.0", kit: Kit::Python, version: "1.3.0", script: "v1.py", bindings: ALL, megabytes: 111 },
    Client {
        name: "python-0.3.26",
        kit: Kit::Python,
        version: "0.3.26",
        script: "v0_3.py",
        bindings: ALL,
        megabytes: 106,
    },
    Client {
        name: "python-0.2.16",
        kit: Kit::Python,
        version: "0.2.16",
        script: "v0_2.py",
        bindings: JSON_RPC,
        megabytes: 51,
    },
    Client { name: "js-1.3.0", kit: Kit::Node, version: "1.3.0", script: "v1.mjs", bindings: ALL, megabytes: 26 },
    Client { name: "js-0.3.14", kit: Kit::Node, version: "0.3.14", script: "v0_3.mjs", bindings: BOTH, megabytes: 7 },
    Client { name: "js-0.3.13", kit: Kit::Node, version: "0.3.13", script: "v0_3.mjs", bindings: BOTH, megabytes: 3 },
    Client {
        name: "js-0.2.5",
        kit: Kit::Node,
        version: "0.2.5",
        script: "v0_2.mjs",
        bindings: JSON_RPC,
        megabytes: 12,
    },
    // No SDK: a client that knows the services by reflection only.
    Client {
        name: "reflection",
        kit: Kit::Python,
        version: "reflection",
        script: "reflection.py",
        bindings: GRPC,
        megabytes: 49,
    },
];

//! The client suites: official SDKs of other languages, each talking to a real server. A new one is a new row.

/// A suite that takes `--url URL --binding BINDING`, prints `ok - ...` or `not ok - ...` per case, and ends with
/// the line `N passed, N failed`.
pub struct Client {
    pub name: &'static str,
    pub kit: Kit,
    /// The program of the suite, in its language's folder below `tests/clients`.
    pub script: &'static str,
    pub bindings: &'static [&'static str],
}

/// What a suite runs with.
#[derive(Clone, Copy)]
pub enum Kit {
    /// A virtual environment with the packages of this file.
    Python { requirements: &'static str },
    /// A folder of Node modules, for this `package.json`.
    Node { package: &'static str },
}

const BOTH: &[&str] = &["jsonrpc", "http_json"];
const JSON_RPC: &[&str] = &["jsonrpc"];

pub const CLIENTS: &[Client] = &[
    Client {
        name: "python-1.3.0",
        kit: Kit::Python { requirements: "requirements-1.3.0.txt" },
        script: "v1.py",
        bindings: BOTH,
    },
    Client {
        name: "python-0.3.26",
        kit: Kit::Python { requirements: "requirements-0.3.26.txt" },
        script: "v0_3.py",
        bindings: BOTH,
    },
    Client {
        name: "python-0.2.16",
        kit: Kit::Python { requirements: "requirements-0.2.16.txt" },
        script: "v0_2.py",
        bindings: JSON_RPC,
    },
    Client { name: "js-1.3.0", kit: Kit::Node { package: "package-1.3.0.json" }, script: "v1.mjs", bindings: BOTH },
    Client { name: "js-0.3.13", kit: Kit::Node { package: "package-0.3.13.json" }, script: "v0_3.mjs", bindings: BOTH },
    Client {
        name: "js-0.2.5",
        kit: Kit::Node { package: "package-0.2.5.json" },
        script: "v0_2.mjs",
        bindings: JSON_RPC,
    },
];

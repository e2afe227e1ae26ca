//! Which version a server is spoken to in, and over which binding.

use std::fmt;

use crate::ProtocolVersion;

/// How calls travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Binding {
    JsonRpc,
    HttpJson,
    Grpc,
}

impl Binding {
    /// As cards name it, in any case and with the marks that people put between the letters.
    pub fn parse(name: &str) -> Option<Self> {
        let letters: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
        match letters.to_ascii_uppercase().as_str() {
            "JSONRPC" | "JSONRPC20" => Some(Binding::JsonRpc),
            "HTTPJSON" | "REST" | "HTTP" | "HTTPJSONREST" => Some(Binding::HttpJson),
            "GRPC" => Some(Binding::Grpc),
            _ => None,
        }
    }

    /// As cards name it.
    pub fn name(self) -> &'static str {
        match self {
            Binding::JsonRpc => "JSONRPC",
            Binding::HttpJson => "HTTP+JSON",
            Binding::Grpc => "GRPC",
        }
    }
}

/// A version and a binding that go together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerProtocol {
    version: ProtocolVersion,
    binding: Binding,
}

impl PeerProtocol {
    /// Each of them, the newest first.
    pub const ALL: [PeerProtocol; 8] = [
        PeerProtocol { version: ProtocolVersion::V1_0, binding: Binding::JsonRpc },
        PeerProtocol { version: ProtocolVersion::V1_0, binding: Binding::HttpJson },
        PeerProtocol { version: ProtocolVersion::V1_0, binding: Binding::Grpc },
        PeerProtocol { version: ProtocolVersion::V0_3, binding: Binding::JsonRpc },
        PeerProtocol { version: ProtocolVersion::V0_3, binding: Binding::HttpJson },
        PeerProtocol { version: ProtocolVersion::V0_3, binding: Binding::Grpc },
        PeerProtocol { version: ProtocolVersion::V0_2, binding: Binding::JsonRpc },
        PeerProtocol { version: ProtocolVersion::V0_1, binding: Binding::JsonRpc },
    ];

    /// `None`: 0.1 and 0.2 have JSON-RPC only.
    pub fn new(version: ProtocolVersion, binding: Binding) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.version == version && known.binding == binding)
    }

    /// What an interface of a card means. Cards of 0.2 from its last days may name HTTP+JSON and gRPC, which 0.3 then kept.
    pub fn of_interface(interface: &sabir_model::Interface) -> Option<Self> {
        let binding = Binding::parse(&interface.binding)?;
        match (ProtocolVersion::parse(&interface.version)?, binding) {
            (ProtocolVersion::V0_2, Binding::HttpJson | Binding::Grpc) => Self::new(ProtocolVersion::V0_3, binding),
            (version, binding) => Self::new(version, binding),
        }
    }

    pub fn version(self) -> ProtocolVersion {
        self.version
    }

    pub fn binding(self) -> Binding {
        self.binding
    }
}

/// `0.3 over JSONRPC`.
impl fmt::Display for PeerProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} over {}", self.version.number(), self.binding.name())
    }
}

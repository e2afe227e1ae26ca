//! Agent cards, in one struct for all generations.
//!
//! The members of 1.0 and 0.x are disjoint, so that one card can speak to clients of every version at once. The
//! wire structs hold the union; a profile says which of the members are written, and reading takes whatever came.

mod authentication;
mod case;
mod entry;
mod flow;
mod read;
mod requirement;
mod security;
mod skill;
mod write;

pub use read::read;
pub use write::{card_superset, card_v01, card_v1, card_v03, write_card};

/// Which generations a card is written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Profile {
    V1,
    V03,
    V01,
    /// 1.0 and 0.3 side by side, and what 0.1 knows of security.
    Superset,
    /// 1.0, and a `url` that is the gateway's. The members of 0.3 would call that one a JSON-RPC address.
    Gateway,
}

impl Profile {
    fn has_v1(self) -> bool {
        matches!(self, Profile::V1 | Profile::Superset | Profile::Gateway)
    }

    fn has_v03(self) -> bool {
        matches!(self, Profile::V03 | Profile::Superset)
    }

    fn has_v01(self) -> bool {
        matches!(self, Profile::V01 | Profile::Superset)
    }

    fn has_gateway(self) -> bool {
        matches!(self, Profile::Superset | Profile::Gateway)
    }
}

//! Delegation: programs that ask other agents in the name of the task that they work on.
//!
//! | file          | its idea                                                                              |
//! |---------------|---------------------------------------------------------------------------------------|
//! | `grants.rs`   | what a program may do while its turn is at work, and the credential that stands for it |
//! | `rules.rs`    | which calls a program may make, and which agents it may ask                           |
//! | `parent.rs`   | a child is canceled when its parent ends without a result                             |

mod grants;
mod parent;
mod rules;

pub use grants::{CREDENTIAL_PREFIX, Grant, LentGrant, ProgramCredential};
pub(crate) use grants::{ChildPlace, Grants};
pub(crate) use rules::may_see;

/// How far programs may delegate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DelegationLimits {
    /// How many delegations may lie between a task and the one that a caller has made.
    pub max_depth: usize,
    /// How many tasks the program may make in one turn.
    pub max_children: usize,
}

impl Default for DelegationLimits {
    fn default() -> Self {
        Self { max_depth: 3, max_children: 16 }
    }
}

//! The nodes that share the store, for operators.

use sabir_model::Error;
use sabir_store::Member;

use crate::engine::Engine;

impl Engine {
    /// Every node that is alive, and those that ended a short time ago. Empty: this server has its store for itself.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn nodes(&self) -> Result<Vec<Member>, Error> {
        match &self.core.membership {
            Some(membership) => Ok(membership.cluster.members().await?),
            None => Ok(Vec::new()),
        }
    }

    /// Whether the database notifies this node of changes by other nodes; else it polls. `None`: it has its store for itself.
    pub fn receives_hints(&self) -> Option<bool> {
        self.core.membership.as_ref().map(|membership| membership.cluster.receives_hints())
    }
}

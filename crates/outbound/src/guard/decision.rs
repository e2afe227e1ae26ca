//! The guard itself: a policy, and a resolver to see through names.

use std::net::IpAddr;
use std::sync::Arc;

use super::host::Host;
use super::policy::{Approval, EgressPolicy};
use super::refusal::Refusal;
use super::resolve::Resolve;
use super::target::Target;

/// Decides what may be dialled. Cheap to share; the client and whoever accepts URLs ask the same one.
pub struct Guard {
    policy: EgressPolicy,
    resolver: Arc<dyn Resolve>,
}

/// Why a URL cannot be dialled now. The sentence may be shown to remote callers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GuardError {
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The sentence is that of `Refusal::ResolvedAddress`: a caller must not learn which names exist inside.
    #[error("the host name does not resolve to a public address")]
    Unresolved {
        /// What the resolver said; for the log of the operator.
        detail: String,
    },
}

impl Guard {
    pub fn new(policy: EgressPolicy, resolver: Arc<dyn Resolve>) -> Self {
        Guard { policy, resolver }
    }

    /// Checks a URL that a caller wants to have dialled later. The answer is good for now: `addresses` is asked again
    /// at every connect.
    pub async fn check_url(&self, url: &str) -> Result<Target, GuardError> {
        let target = Target::parse(url)?;
        // The names that the operator allowed need not resolve yet.
        if self.policy.check(&target)? == Approval::CheckedAddress {
            self.addresses(&target).await?;
        }
        Ok(target)
    }

    /// The addresses that a connection to this target may be opened to; never empty. One look-up, and one forbidden
    /// address among the answers refuses the name: an honest name does not have both kinds.
    pub async fn addresses(&self, target: &Target) -> Result<Vec<IpAddr>, GuardError> {
        let approval = self.policy.check(target)?;
        let name = match &target.host {
            Host::Address(address) => return Ok(vec![*address]),
            Host::Name(name) => name,
        };
        let unresolved = |detail: String| GuardError::Unresolved { detail };
        let mut addresses = self.resolver.resolve(name).await.map_err(|error| unresolved(error.to_string()))?;
        if addresses.is_empty() {
            return Err(unresolved("the name has no address".to_owned()));
        }
        if approval == Approval::CheckedAddress && !addresses.iter().all(|address| self.policy.allows(*address)) {
            return Err(Refusal::ResolvedAddress.into());
        }
        for address in &mut addresses {
            *address = address.to_canonical();
        }
        Ok(addresses)
    }
}

//! Who asks, and whose a task is.
//!
//! Owner is part of every lookup: a task of somebody else is answered exactly like one that does not
//! exist. Until credentials are configured everybody is the one anonymous caller.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{AgentId, Delegation};

/// An organisation and somebody in it. The subject is qualified by who vouches for it (`token:alice` is not
/// `https://idp.example/#alice`).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Owner(Arc<str>);

impl Owner {
    /// Of everybody without a credential.
    pub fn anonymous() -> Self {
        Self(Arc::from(""))
    }

    /// Somebody in an organisation.
    pub fn new(organisation: &str, subject: &str) -> Self {
        // The separator cannot occur in the parts, so two owners never share a key.
        let clean = |text: &str| text.replace('\u{1f}', "\u{fffd}");
        Self(format!("{}\u{1f}{}", clean(organisation), clean(subject)).into())
    }

    /// The form in which stores keep it and compare it.
    pub fn as_key(&self) -> &str {
        &self.0
    }

    /// The owner that a store has kept under this key.
    pub fn from_key(key: &str) -> Self {
        Self(Arc::from(key))
    }

    /// Whether both belong to the same organisation, or both to none. The anonymous owner is beside all of them.
    pub fn shares_tenant_with(&self, other: &Owner) -> bool {
        match (self.parts(), other.parts()) {
            (Some((own, _)), Some((others, _))) => own == others,
            (own, others) => own.is_none() && others.is_none(),
        }
    }

    /// Organisation and subject; `None`: anonymous.
    fn parts(&self) -> Option<(&str, &str)> {
        self.0.split_once('\u{1f}')
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.parts() {
            Some(("", subject)) => f.write_str(subject),
            Some((organisation, subject)) => write!(f, "{subject}@{organisation}"),
            None => f.write_str("anonymous"),
        }
    }
}

impl Serialize for Owner {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Owner {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(String::deserialize(deserializer)?.into()))
    }
}

/// What a caller may do, by the names that every credential can grant. Agents may name further scopes of their own
/// (`approver`).
pub mod scope {
    /// Sends messages, answers questions, cancels, sets webhooks; whoever may do that may also read.
    pub const RUN: &str = "run";
    /// Sees its own tasks.
    pub const READ: &str = "read";
    /// Answers questions of the type `permission`, where an agent's `approver` names this scope.
    pub const APPROVE: &str = "approve";
    /// Sees and does everything with everybody's tasks.
    pub const ADMIN: &str = "admin";
    /// Reads `/metrics`, and nothing else.
    pub const METRICS: &str = "metrics";
}

/// Everything that is known about who makes a call.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Caller {
    /// Whose tasks the caller sees and makes.
    pub owner: Owner,
    /// What the caller may do, as its credential says: `run`, or `run:coder` for one agent alone. `None`: nothing limits
    /// what it does with its own tasks, since no credential is asked for or a mounting program did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Arc<[String]>>,
    /// Where the request came from. It is not stored.
    #[serde(skip)]
    pub peer: Option<IpAddr>,
    /// The caller is a program that works on a task of the owner, and may do no more than this. `None`: it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delegation: Option<Arc<Delegation>>,
}

impl Caller {
    /// Somebody without a credential.
    pub fn anonymous() -> Self {
        Self::from(Owner::anonymous())
    }

    /// Somebody in an organisation. Each sees only its own tasks.
    pub fn new(tenant: &str, subject: &str) -> Self {
        Self::from(Owner::new(tenant, subject))
    }

    /// The same with these scopes, and no others.
    pub fn with_scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.scopes = Some(scopes.into_iter().map(Into::into).collect());
        self
    }

    /// The same, calling from this address.
    pub fn from_peer(mut self, peer: Option<IpAddr>) -> Self {
        self.peer = peer;
        self
    }

    /// The same person, if it were no program that calls in its name.
    pub fn without_delegation(mut self) -> Self {
        self.delegation = None;
        self
    }

    /// Who it is, qualified by who says so (`token:alice`, `https://idp.example/#alice`). `None`: anonymous.
    pub fn subject(&self) -> Option<&str> {
        self.owner.parts().map(|(_, subject)| subject)
    }

    /// The organisation that the subject belongs to. `None`: anonymous.
    pub fn tenant(&self) -> Option<&str> {
        self.owner.parts().map(|(tenant, _)| tenant)
    }

    /// Whether nothing is known of the caller.
    pub fn is_anonymous(&self) -> bool {
        self.owner == Owner::anonymous()
    }

    /// Whether the credential names this very scope.
    pub fn has_scope(&self, scope: &str) -> bool {
        self.scopes.as_deref().unwrap_or_default().iter().any(|own| own == scope)
    }

    /// Whether the credential names this scope, for all agents or for this one.
    pub fn has_scope_for(&self, scope: &str, agent: &AgentId) -> bool {
        let is_it = |own: &str| match own.strip_prefix(scope) {
            Some("") => true,
            Some(rest) => rest.strip_prefix(':') == Some(agent.as_str()),
            None => false,
        };
        self.scopes.as_deref().unwrap_or_default().iter().any(|own| is_it(own))
    }

    /// Whether the caller sees and does everything with everybody's tasks.
    pub fn is_admin(&self) -> bool {
        self.has_scope(scope::ADMIN)
    }

    /// Whether the caller may send to this agent, and change its own tasks there.
    pub fn may_run(&self, agent: &AgentId) -> bool {
        self.scopes.is_none() || self.is_admin() || self.has_scope_for(scope::RUN, agent)
    }

    /// Whether the caller may see its own tasks of this agent.
    pub fn may_read(&self, agent: &AgentId) -> bool {
        self.may_run(agent) || self.has_scope_for(scope::READ, agent)
    }

    /// The agents whose tasks the caller may see, if its scopes name some; `None`: all.
    pub fn readable_agents(&self) -> Option<Vec<AgentId>> {
        let scopes = self.scopes.as_deref()?;
        let is_unlimited = |own: &String| matches!(own.as_str(), scope::RUN | scope::READ | scope::ADMIN);
        if scopes.iter().any(is_unlimited) {
            return None;
        }
        let named = scopes.iter().filter_map(|own| match own.split_once(':') {
            Some((scope::RUN | scope::READ, agent)) => AgentId::parse(agent).ok(),
            _ => None,
        });
        let mut agents: Vec<AgentId> = named.collect();
        agents.sort();
        agents.dedup();
        Some(agents)
    }
}

impl From<Owner> for Caller {
    fn from(owner: Owner) -> Self {
        Self { owner, scopes: None, peer: None, delegation: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_tells_its_subject_and_its_tenant() {
        for (caller, expected) in [
            (Caller::anonymous(), (None, None)),
            (Caller::new("acme", "alice"), (Some("acme"), Some("alice"))),
            (Caller::new("", "alice"), (Some(""), Some("alice"))),
            (Caller::new("a\u{1f}b", "c"), (Some("a\u{fffd}b"), Some("c"))),
        ] {
            assert_eq!((caller.tenant(), caller.subject()), expected);
            assert_eq!(caller.is_anonymous(), expected == (None, None));
        }
        let caller = Caller::new("acme", "alice").with_scopes(["run", "read"]);
        assert!(caller.has_scope("read") && !caller.has_scope("admin"));
    }

    #[test]
    fn tenants_are_compared_whole() {
        let (acme, none, anonymous) = (Owner::new("acme", "alice"), Owner::new("", "alice"), Owner::anonymous());
        for (one, other, expected) in [
            (&acme, Owner::new("acme", "bob"), true),
            (&acme, Owner::new("acm", "ealice"), false),
            (&acme, Owner::new("acme2", "alice"), false),
            (&acme, none.clone(), false),
            (&none, Owner::new("", "bob"), true),
            (&none, anonymous.clone(), false),
            (&anonymous, anonymous.clone(), true),
        ] {
            assert_eq!(one.shares_tenant_with(&other), expected, "{one:?} {other:?}");
            assert_eq!(other.shares_tenant_with(one), expected, "{other:?} {one:?}");
        }
    }

    #[test]
    fn scopes_say_what_a_caller_may_do() {
        let alice = || Caller::new("acme", "alice");
        let coder = AgentId::parse("coder").unwrap();
        for (caller, run, read, admin) in [
            (Caller::anonymous(), true, true, false),
            (alice(), true, true, false),
            (alice().with_scopes([] as [&str; 0]), false, false, false),
            (alice().with_scopes(["run"]), true, true, false),
            (alice().with_scopes(["run:coder"]), true, true, false),
            (alice().with_scopes(["run:other", "run:", "run:coder:x", "running", "coder"]), false, false, false),
            (alice().with_scopes(["read"]), false, true, false),
            (alice().with_scopes(["read:coder", "run:other"]), false, true, false),
            (alice().with_scopes(["approve"]), false, false, false),
            (alice().with_scopes(["admin"]), true, true, true),
            (alice().with_scopes(["admin:coder"]), false, false, false),
        ] {
            let may = (caller.may_run(&coder), caller.may_read(&coder), caller.is_admin());
            assert_eq!(may, (run, read, admin), "{:?}", caller.scopes);
            let is_readable = caller.readable_agents().is_none_or(|agents| agents.contains(&coder));
            assert_eq!(is_readable, read, "{:?}", caller.scopes);
        }
    }

    #[test]
    fn the_address_of_a_caller_is_not_stored() {
        let caller = Caller::new("acme", "alice").with_scopes(["run"]).from_peer("192.0.2.7".parse().ok());
        let text = serde_json::to_string(&caller).unwrap();
        assert!(!text.contains("192.0.2.7"), "{text}");
        assert_eq!(serde_json::from_str::<Caller>(&text).unwrap(), caller.from_peer(None));
    }
}

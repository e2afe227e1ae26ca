//! What programs may do in the name of their tasks, while their turns are at work, and the credentials that stand for it.
//!
//! All of it is in memory. A grant belongs to one turn and ends with it. A credential belongs to one process of a program, which may
//! serve several turns, so a grant is lent to it for each of them; in between it is worth nothing. Of a credential only the digest is
//! kept.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use aws_lc_rs::digest::{SHA256, digest};
use sabir_model::{AgentId, Ancestor, Caller, Delegated, Delegation, Error, scope};

use crate::Turn;
use crate::sharded::lock;

/// What credentials of programs begin with, so that they are recognised.
pub const CREDENTIAL_PREFIX: &str = "sabir_d_";

#[derive(Default)]
pub(crate) struct Grants {
    state: Mutex<GrantState>,
}

#[derive(Default)]
struct GrantState {
    last: u64,
    /// How many tasks each turn has delegated.
    children: HashMap<u64, usize>,
    /// The programs that have a credential, and what was lent to them.
    programs: HashMap<Secret, Option<Caller>>,
}

/// The SHA-256 digest of a credential. Whoever measures how long a look-up takes learns about the digest of what it sent, which it
/// cannot steer towards that of another credential.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Secret([u8; 32]);

impl Secret {
    fn of(credential: &[u8]) -> Self {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest(&SHA256, credential).as_ref());
        Self(bytes)
    }
}

/// The right of a program to ask other agents in the name of its task. It ends when this is dropped.
pub struct Grant {
    grants: Arc<Grants>,
    caller: Caller,
    turn: u64,
}

/// A credential of one process of a program. It is worth something only while a grant is lent to it.
pub struct ProgramCredential {
    grants: Arc<Grants>,
    secret: Secret,
    text: String,
}

/// A grant that a program can use. Dropping it takes it back.
pub struct LentGrant {
    grant: Grant,
    secret: Secret,
}

/// The place of a child among those of its parent's turn. Dropping it gives the place back.
pub(crate) struct ChildPlace {
    grants: Arc<Grants>,
    turn: u64,
    is_used: bool,
}

impl Grants {
    pub(crate) fn is_active(&self, turn: u64) -> bool {
        lock(&self.state).children.contains_key(&turn)
    }

    /// Who calls with this credential. `None`: it is not known, or no turn of its program is at work.
    pub(crate) fn caller(&self, credential: &[u8]) -> Option<Caller> {
        lock(&self.state).programs.get(&Secret::of(credential))?.clone()
    }

    /// Takes a place for one more child. `None`: there is none left.
    ///
    /// # Errors
    /// The turn is over.
    pub(super) fn place_for_child(self: &Arc<Self>, turn: u64, limit: usize) -> Result<Option<ChildPlace>, Error> {
        let mut state = lock(&self.state);
        let children = state.children.get_mut(&turn).ok_or_else(turn_is_over)?;
        if *children >= limit {
            return Ok(None);
        }
        *children += 1;
        Ok(Some(ChildPlace { grants: self.clone(), turn, is_used: false }))
    }

    fn begin(self: &Arc<Self>, caller: Caller, delegated: Delegated, agents: Option<Vec<AgentId>>) -> Grant {
        let mut state = lock(&self.state);
        state.last += 1;
        let turn = state.last;
        state.children.insert(turn, 0);
        let mut caller = caller.without_delegation();
        caller.delegation = Some(Arc::new(Delegation { delegated: Arc::new(delegated), agents, turn }));
        Grant { grants: self.clone(), caller, turn }
    }
}

pub(super) fn turn_is_over() -> Error {
    Error::Forbidden("the turn that this credential belongs to is over; agents can be asked only during it".into())
}

impl ChildPlace {
    /// The child is made.
    pub(crate) fn keep(&mut self) {
        self.is_used = true;
    }

    /// The child could not be stored after all.
    pub(crate) fn give_back(&mut self) {
        self.is_used = false;
    }
}

impl Drop for ChildPlace {
    fn drop(&mut self) {
        if !self.is_used
            && let Some(children) = lock(&self.grants.state).children.get_mut(&self.turn)
        {
            *children -= 1;
        }
    }
}

impl Grant {
    /// The program, as a caller.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        lock(&self.grants.state).children.remove(&self.turn);
    }
}

impl ProgramCredential {
    /// What the program shows.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Lends the grant of the turn that begins, instead of that of an earlier one.
    pub fn lend(&self, grant: Grant) -> LentGrant {
        if let Some(lent) = lock(&self.grants.state).programs.get_mut(&self.secret) {
            *lent = Some(grant.caller.clone());
        }
        LentGrant { grant, secret: self.secret }
    }
}

impl Drop for ProgramCredential {
    fn drop(&mut self) {
        lock(&self.grants.state).programs.remove(&self.secret);
    }
}

/// Never shown by accident.
impl fmt::Debug for ProgramCredential {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("ProgramCredential(...)")
    }
}

impl Drop for LentGrant {
    fn drop(&mut self) {
        if let Some(lent) = lock(&self.grant.grants.state).programs.get_mut(&self.secret) {
            // A later turn may have lent its own already.
            let is_own = |caller: &Caller| caller.delegation == self.grant.caller.delegation;
            lent.take_if(|caller| is_own(caller));
        }
    }
}

impl Turn {
    /// The right to ask other agents in the name of this task, until the grant is dropped: these, or all that the caller may run.
    pub fn delegate(&self, agents: Option<Vec<AgentId>>) -> Grant {
        let (agent, task, context) = (self.agent.clone(), self.task.clone(), self.context.clone());
        let own = self.opening.request.as_ref().and_then(|request| request.delegated.as_ref());
        let earlier = own.map_or_else(Vec::new, |delegated| delegated.chain().cloned().collect());
        let delegated = Delegated { parent: Ancestor { agent, task, context }, earlier };
        self.grants.begin(self.delegating_caller(), delegated, agents)
    }

    /// A credential for a program of this turn, and of later turns that it serves.
    pub fn program_credential(&self) -> ProgramCredential {
        let mut bytes = [0; 32];
        aws_lc_rs::rand::fill(&mut bytes).expect("the system has random numbers");
        let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
        let text: String = std::iter::once(CREDENTIAL_PREFIX.to_owned()).chain(digits).collect();
        let secret = Secret::of(text.as_bytes());
        lock(&self.grants.state).programs.insert(secret, None);
        ProgramCredential { grants: self.grants.clone(), secret, text }
    }

    /// The owner of the task, with the right to run agents that the sender of the message has. Nothing else of a credential is handed
    /// to a program. The message of somebody who is not the owner (an admin, an approver) hands over nothing; then the rights are those
    /// of who began the task.
    fn delegating_caller(&self) -> Caller {
        let scopes = match self.caller.owner == self.owner {
            true => self.caller.scopes.clone(),
            false => {
                let began = self.opening.request.as_ref().and_then(|request| request.caller.as_ref());
                began.and_then(|caller| caller.scopes.clone())
            }
        };
        let caller = Caller::from(self.owner.clone());
        let Some(scopes) = scopes else { return caller };
        let is_unlimited = scopes.iter().any(|own| own == scope::RUN || own == scope::ADMIN);
        let is_run = |own: &&String| own.split_once(':').is_some_and(|(name, _)| name == scope::RUN);
        match is_unlimited {
            true => caller.with_scopes([scope::RUN]),
            false => caller.with_scopes(scopes.iter().filter(is_run).cloned()),
        }
    }
}

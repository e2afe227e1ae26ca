//! States and roles as 0.3 names them.

use sabir_model::{Role, State};
use serde::{Deserialize, Serialize};

use crate::v1::StateName;
use crate::wire_types::{Text, Violations};

/// A state as 0.3 names it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct State0_3<'a>(#[serde(borrow)] Text<'a>);

impl StateName for State0_3<'_> {
    fn new(state: State) -> Self {
        Self(state_name(state).into())
    }

    fn read(self) -> Result<Option<State>, Violations> {
        read_state(self.0).map(Some)
    }
}

pub(crate) fn state_name(state: State) -> &'static str {
    match state {
        State::Submitted => "submitted",
        State::Working => "working",
        State::InputRequired => "input-required",
        State::AuthRequired => "auth-required",
        State::Completed => "completed",
        State::Failed => "failed",
        State::Canceled => "canceled",
        State::Rejected => "rejected",
    }
}

/// Some peers write `cancelled`. `unknown` is refused: the model has no such state.
pub(crate) fn read_state(name: Text<'_>) -> Result<State, Violations> {
    if name.as_str() == "cancelled" {
        return Ok(State::Canceled);
    }
    let state = State::ALL.into_iter().find(|state| state_name(*state) == name.as_str());
    state.ok_or_else(|| Violations::single("", "is no state of the protocol"))
}

pub(crate) fn role_name(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        Role::Agent => "agent",
    }
}

pub(crate) fn read_role(name: Option<Text<'_>>) -> Result<Option<Role>, Violations> {
    match name.as_ref().map(Text::as_str) {
        None | Some("") => Ok(None),
        Some("user") => Ok(Some(Role::User)),
        Some("agent") => Ok(Some(Role::Agent)),
        Some(_) => Err(Violations::single("", "must be user or agent")),
    }
}

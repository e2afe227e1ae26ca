//! The enums of 1.0, by name and number.

use sabir_model::{Role, State};
use serde::{Deserialize, Serialize};

use crate::wire_types::{EnumValue, Violations};

/// How a dialect names the states of a task.
pub(crate) trait StateName: Sized {
    fn new(state: State) -> Self;

    /// `None`: the unspecified state, which counts as missing.
    fn read(self) -> Result<Option<State>, Violations>;
}

/// A state as 1.0 names it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct State1_0<'a>(#[serde(borrow)] EnumValue<'a>);

impl StateName for State1_0<'_> {
    fn new(state: State) -> Self {
        Self(state_name(state).into())
    }

    fn read(self) -> Result<Option<State>, Violations> {
        read_state(Some(self.0))
    }
}

/// A state as 1.0 names it.
pub fn state_name(state: State) -> &'static str {
    match state {
        State::Submitted => "TASK_STATE_SUBMITTED",
        State::Working => "TASK_STATE_WORKING",
        State::Completed => "TASK_STATE_COMPLETED",
        State::Failed => "TASK_STATE_FAILED",
        State::Canceled => "TASK_STATE_CANCELED",
        State::InputRequired => "TASK_STATE_INPUT_REQUIRED",
        State::Rejected => "TASK_STATE_REJECTED",
        State::AuthRequired => "TASK_STATE_AUTH_REQUIRED",
    }
}

/// `None` is the unspecified state, which counts as missing. Both `CANCELED` and `CANCELLED` are read: the enum of 0.3
/// has two Ls.
pub(crate) fn read_state(name: Option<EnumValue<'_>>) -> Result<Option<State>, Violations> {
    const UNSPECIFIED: &str = "TASK_STATE_UNSPECIFIED";
    Ok(match name {
        None => None,
        Some(EnumValue::Text(name)) => match name.as_str() {
            "" | UNSPECIFIED => None,
            "TASK_STATE_CANCELLED" => Some(State::Canceled),
            name => Some(known(State::ALL.into_iter().find(|state| state_name(*state) == name), "state")?),
        },
        Some(EnumValue::Number(number)) => match number.0 {
            0 => None,
            1 => Some(State::Submitted),
            2 => Some(State::Working),
            3 => Some(State::Completed),
            4 => Some(State::Failed),
            5 => Some(State::Canceled),
            6 => Some(State::InputRequired),
            7 => Some(State::Rejected),
            8 => Some(State::AuthRequired),
            _ => Some(known(None, "state")?),
        },
    })
}

pub(crate) fn role_name(role: Role) -> &'static str {
    match role {
        Role::User => "ROLE_USER",
        Role::Agent => "ROLE_AGENT",
    }
}

pub(crate) fn read_role(name: Option<EnumValue<'_>>) -> Result<Option<Role>, Violations> {
    Ok(match name {
        None => None,
        Some(EnumValue::Text(name)) => match name.as_str() {
            "" | "ROLE_UNSPECIFIED" => None,
            "ROLE_USER" => Some(Role::User),
            "ROLE_AGENT" => Some(Role::Agent),
            _ => Some(known(None, "role")?),
        },
        Some(EnumValue::Number(number)) => match number.0 {
            0 => None,
            1 => Some(Role::User),
            2 => Some(Role::Agent),
            _ => Some(known(None, "role")?),
        },
    })
}

fn known<T>(value: Option<T>, noun: &str) -> Result<T, Violations> {
    value.ok_or_else(|| Violations::single("", &format!("is no {noun} of the protocol")))
}

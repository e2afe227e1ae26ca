//! States and roles by their numbers, which are those of 1.0.

use sabir_model::{Role, State};
use sabir_proto::v03;

use crate::v1;
use crate::wire_types::{EnumValue, Int32, Violations};

pub(super) fn state_number(state: State) -> i32 {
    let state = match state {
        State::Submitted => v03::TaskState::Submitted,
        State::Working => v03::TaskState::Working,
        State::InputRequired => v03::TaskState::InputRequired,
        State::AuthRequired => v03::TaskState::AuthRequired,
        State::Completed => v03::TaskState::Completed,
        State::Failed => v03::TaskState::Failed,
        State::Canceled => v03::TaskState::Cancelled,
        State::Rejected => v03::TaskState::Rejected,
    };
    state.into()
}

/// `None` is the unspecified state, which counts as missing.
pub(super) fn read_state(number: i32) -> Result<Option<State>, Violations> {
    v1::read_state(Some(EnumValue::Number(Int32(number))))
}

pub(super) fn role_number(role: Role) -> i32 {
    let role = match role {
        Role::User => v03::Role::User,
        Role::Agent => v03::Role::Agent,
    };
    role.into()
}

/// `None` is the unspecified role, which counts as missing.
pub(super) fn read_role(number: i32) -> Result<Option<Role>, Violations> {
    v1::read_role(Some(EnumValue::Number(Int32(number))))
}

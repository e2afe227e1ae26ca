//! The enums of 1.0, which protobuf has as numbers.

use sabir_model::{Role, State};
use sabir_proto::v1 as proto;

use crate::v1;
use crate::wire_types::{EnumValue, Int32, Violations};

pub(super) fn write_state(state: State) -> i32 {
    let state = match state {
        State::Submitted => proto::TaskState::Submitted,
        State::Working => proto::TaskState::Working,
        State::Completed => proto::TaskState::Completed,
        State::Failed => proto::TaskState::Failed,
        State::Canceled => proto::TaskState::Canceled,
        State::InputRequired => proto::TaskState::InputRequired,
        State::Rejected => proto::TaskState::Rejected,
        State::AuthRequired => proto::TaskState::AuthRequired,
    };
    state.into()
}

/// `None` is the unspecified state, which counts as missing.
pub(super) fn read_state(state: i32) -> Result<Option<State>, Violations> {
    v1::read_state(Some(number(state)))
}

pub(super) fn write_role(role: Role) -> i32 {
    let role = match role {
        Role::User => proto::Role::User,
        Role::Agent => proto::Role::Agent,
    };
    role.into()
}

pub(super) fn read_role(role: i32) -> Result<Option<Role>, Violations> {
    v1::read_role(Some(number(role)))
}

/// A value of an enum as the JSON dialect reads it.
pub(super) fn number(value: i32) -> EnumValue<'static> {
    EnumValue::Number(Int32(value))
}

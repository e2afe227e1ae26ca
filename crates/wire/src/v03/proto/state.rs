//! States in 0.3's ProtoJSON: those of 1.0, but `canceled` has two Ls.

use sabir_model::State;
use serde::{Deserialize, Serialize};

use crate::v1::{self, StateName, read_state};
use crate::wire_types::{EnumValue, Violations};

#[derive(Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct ProtoState<'a>(#[serde(borrow)] EnumValue<'a>);

impl StateName for ProtoState<'_> {
    fn new(state: State) -> Self {
        let name = match state {
            State::Canceled => "TASK_STATE_CANCELLED",
            state => v1::state_name(state),
        };
        Self(name.into())
    }

    fn read(self) -> Result<Option<State>, Violations> {
        read_state(Some(self.0))
    }
}

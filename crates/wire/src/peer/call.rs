//! A call of another server.

use sabir_model::{Call, PushCall};

use crate::Operation;

/// What our own callers can ask of us, asked of another server.
#[derive(Debug, Clone, Copy)]
pub struct PeerCall<'a> {
    /// Its agent is the tenant that the other server's card names.
    pub call: &'a Call,
    /// Where a list continues: the other server's own token, which nobody else can read.
    pub page_token: Option<&'a str>,
    /// The id of the last event that was received, as the other server wrote it.
    pub last_event_id: Option<&'a str>,
}

impl<'a> PeerCall<'a> {
    pub fn new(call: &'a Call) -> Self {
        PeerCall { call, page_token: None, last_event_id: None }
    }

    pub fn operation(&self) -> Operation {
        match self.call {
            Call::Send(send) if send.delivery == sabir_model::Delivery::Stream => Operation::Stream,
            Call::Send(_) => Operation::Send,
            Call::Get(_) => Operation::Get,
            Call::List(_) => Operation::List,
            Call::Cancel(_) => Operation::Cancel,
            Call::Subscribe(_) => Operation::Subscribe,
            Call::Push(PushCall::Set { .. }) => Operation::PushSet,
            Call::Push(PushCall::Get { .. }) => Operation::PushGet,
            Call::Push(PushCall::List { .. }) => Operation::PushList,
            Call::Push(PushCall::Delete { .. }) => Operation::PushDelete,
            Call::ExtendedCard { .. } => Operation::ExtendedCard,
        }
    }
}

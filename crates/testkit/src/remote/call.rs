//! What a client asks for, in no spelling of the wire.

use super::protocol::Operation;
use super::task::{PushConfig, RemoteMessage, RemoteState};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Call {
    Send(SendCall),
    Get {
        id: String,
        history_length: Option<usize>,
    },
    List(ListQuery),
    Cancel {
        id: String,
    },
    /// `after` is the `Last-Event-ID` of the request.
    Subscribe {
        id: String,
        after: Option<usize>,
    },
    SetPush {
        task_id: String,
        config: PushConfig,
    },
    /// Without an id: the first one.
    GetPush {
        task_id: String,
        id: Option<String>,
    },
    ListPush {
        task_id: String,
    },
    DeletePush {
        task_id: String,
        id: Option<String>,
    },
    ExtendedCard,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct SendCall {
    pub message: RemoteMessage,
    pub delivery: Delivery,
    pub history_length: Option<usize>,
    pub push: Option<PushConfig>,
    /// The `Idempotency-Key` of the request, where it counts.
    pub key: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Delivery {
    Stream,
    WhenSettled,
    Immediately,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct ListQuery {
    pub context_id: Option<String>,
    pub state: Option<RemoteState>,
    pub page_size: Option<usize>,
    pub page_token: Option<String>,
    pub history_length: Option<usize>,
    /// Milliseconds since 1970.
    pub changed_since: Option<u64>,
    pub artifacts: Artifacts,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Artifacts {
    #[default]
    LeftOut,
    Included,
}

impl Call {
    pub(super) fn operation(&self) -> Operation {
        match self {
            Self::Send(send) if send.delivery == Delivery::Stream => Operation::Stream,
            Self::Send(_) => Operation::Send,
            Self::Get { .. } => Operation::Get,
            Self::List(_) => Operation::List,
            Self::Cancel { .. } => Operation::Cancel,
            Self::Subscribe { .. } => Operation::Subscribe,
            Self::SetPush { .. } => Operation::SetPush,
            Self::GetPush { .. } => Operation::GetPush,
            Self::ListPush { .. } => Operation::ListPush,
            Self::DeletePush { .. } => Operation::DeletePush,
            Self::ExtendedCard => Operation::ExtendedCard,
        }
    }
}

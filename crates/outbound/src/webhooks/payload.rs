//! The body of a delivery, in the dialect of the client that set the webhook.
//!
//! | dialect       | body                                                                                   |
//! |---------------|----------------------------------------------------------------------------------------|
//! | 1.0           | a StreamResponse: the event; at waiting and terminal states the task with its artifacts |
//! | 0.3, 0.2, 0.1 | the task as of the event                                                               |

use bytes::Bytes;
use sabir_model::{Birth, Event, Recorded, Task};
use sabir_store::WebhookEvents;
use sabir_wire::{Dialect, Payload, V01, V1, V03};

/// A body and its type.
pub(super) struct Body {
    pub content_type: &'static str,
    pub bytes: Bytes,
}

/// Whether an event is sent at all.
pub(super) fn is_wanted(wanted: WebhookEvents, event: &Event) -> bool {
    match (event, wanted) {
        (Event::Created(_), _) => false,
        (Event::Status(change), _) => {
            change.status.state != sabir_model::State::Submitted || wanted == WebhookEvents::All
        }
        (Event::Artifact(_), wanted) => wanted == WebhookEvents::All,
    }
}

/// `task` is as of the event.
pub(super) fn body(dialect: Birth, task: &Task, recorded: &Recorded) -> Body {
    let mut bytes = Vec::new();
    let content_type = match dialect {
        _ if dialect == V01.birth() => {
            V01.encode(Payload::Task(task), &mut bytes);
            "application/json"
        }
        _ if dialect == V03.birth() => {
            V03.encode(Payload::Task(task), &mut bytes);
            "application/json"
        }
        _ => {
            let event = &recorded.event;
            let shows_task = matches!(event, Event::Status(change) if change.status.state.is_terminal() || change.status.state.is_waiting());
            V1.encode(
                match shows_task {
                    true => Payload::Snapshot(task),
                    false => Payload::Event { task: &task.id, context: &task.context, event },
                },
                &mut bytes,
            );
            "application/a2a+json"
        }
    };
    Body { content_type, bytes: bytes.into() }
}

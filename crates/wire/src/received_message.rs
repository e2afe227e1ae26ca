//! The members of a message, as the dialects have them that give messages an id, and how they are checked.
//!
//! 1.0 and both forms of 0.3 differ in the names of roles and parts; what the members mean is the same.

use sabir_model::{ContextId, Message, MessageId, Role, TaskId};

use crate::wire_types::{PartList, RawJson, Text, Violations, WireList};

pub(crate) struct ReceivedMessage<'a, P> {
    pub(crate) id: Option<Text<'a>>,
    pub(crate) context: Option<Text<'a>>,
    pub(crate) task: Option<Text<'a>>,
    pub(crate) role: Result<Option<Role>, Violations>,
    pub(crate) parts: PartList<'a, P>,
    pub(crate) references: WireList<'a, Text<'a>, TaskId>,
    pub(crate) metadata: Option<RawJson<'a>>,
    pub(crate) extensions: WireList<'a, Text<'a>, String>,
}

impl<P> ReceivedMessage<'_, P> {
    /// `violations` are those that were found before; `parts` is what the dialect calls its parts.
    pub(crate) fn read(self, mut violations: Violations, parts: &str) -> Result<Message, Violations> {
        let id = violations.required_id("messageId", self.id, MessageId::parse);
        let context = violations.id("contextId", self.context, ContextId::parse);
        let task = violations.id("taskId", self.task, TaskId::parse);
        let role = violations.check_required("role", self.role);
        let parts = self.parts.read_required(parts, &mut violations);
        let references = violations.task_ids("referenceTaskIds", self.references);
        let metadata = violations.object("metadata", self.metadata);
        let extensions = self.extensions.into_wire().into_iter().map(Text::into_string).collect();
        let message = id.zip(role).map(|(id, role)| Message {
            task,
            context,
            references,
            extensions,
            metadata,
            ..Message::new(id, role, parts)
        });
        violations.finish(message)
    }
}

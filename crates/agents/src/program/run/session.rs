//! What a run stores for later turns of its context: the program's session, and which task has a question open in it.

use super::super::memory::Memory;
use super::drive::Run;
use crate::update::Update;

impl Run<'_> {
    /// Stores the session as soon as the program reports it, so that a cancel in the middle of the turn does not lose it.
    pub(super) async fn remember(&mut self, update: &Update) {
        let resumable = self.adapter.is_resumable();
        match update {
            Update::Init { session: Some(session), .. } => {
                let known = self.memories.of(self.memory_key);
                let memory = match known.filter(|known| known.session == *session) {
                    Some(known) => {
                        let asked_in = known.asked_in.clone().filter(|task| task == self.turn.task());
                        Memory { agent: Some(self.memory_key.agent.into()), resumable, asked_in, ..known.clone() }
                    }
                    None => Memory { resumable, ..Memory::of(self.memory_key, session, &self.base) },
                };
                if known == Some(&memory) {
                    return;
                }
                self.memories.put(self.memory_key, memory);
            }
            // Otherwise every later message of the context would fail.
            Update::SessionGone => self.memories.forget(self.memory_key),
            _ => return,
        }
        self.turn.remember(self.memories.text()).await;
    }

    /// Stores that this task has asked: the next turn of the context may belong to another task.
    pub(super) async fn remember_asking_task(&mut self) {
        let asked_in = Some(self.turn.task().clone());
        if let Some(known) = self.memories.of(self.memory_key).filter(|known| known.asked_in != asked_in) {
            let memory = Memory { asked_in, ..known.clone() };
            self.memories.put(self.memory_key, memory);
            self.turn.remember(self.memories.text()).await;
        }
    }

    pub(super) fn has_session(&self) -> bool {
        self.memories.of(self.memory_key).is_some()
    }
}

//! The text that a task has made, by its events: each artifact as it is after its last piece.

use crate::dialect_client::Event;

#[derive(Default)]
pub struct MadeText {
    /// The id and the text of each artifact, in the order in which they began.
    artifacts: Vec<(String, String)>,
}

impl MadeText {
    pub fn of(events: &[Event]) -> Self {
        let mut made = Self::default();
        events.iter().for_each(|event| made.take(event));
        made
    }

    pub fn take(&mut self, event: &Event) {
        let Event::Artifact { artifact, text, append, .. } = event else { return };
        match self.artifacts.iter_mut().find(|(id, _)| id == artifact) {
            Some((_, known)) if *append => known.push_str(text),
            Some((_, known)) => known.clone_from(text),
            None => self.artifacts.push((artifact.clone(), text.clone())),
        }
    }

    /// All artifacts, joined.
    pub fn text(&self) -> String {
        self.artifacts.iter().map(|(_, text)| text.as_str()).collect()
    }

    pub fn len(&self) -> usize {
        self.artifacts.iter().map(|(_, text)| text.len()).sum()
    }
}

/// Whether this was the text after any of the events.
pub fn was_made(events: &[Event], text: &str) -> bool {
    let mut made = MadeText::default();
    let is_so = |made: &MadeText| made.len() == text.len() && made.text() == text;
    is_so(&made)
        || events.iter().any(|event| {
            made.take(event);
            is_so(&made)
        })
}

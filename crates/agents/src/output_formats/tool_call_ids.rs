//! Names for the calls of tools, so that a result finds its call even when the program names neither.

use std::collections::VecDeque;

#[derive(Debug, Default)]
pub(super) struct ToolCallIds {
    open: VecDeque<String>,
    made_up: u64,
}

impl ToolCallIds {
    /// A tool is called.
    pub(super) fn open(&mut self, id: Option<String>) -> String {
        let id = id.unwrap_or_else(|| self.make_up());
        self.open.push_back(id.clone());
        id
    }

    pub(super) fn is_open(&self, id: &str) -> bool {
        self.open.iter().any(|open| open == id)
    }

    /// A tool has ended. Without a name it is the one that was called first.
    pub(super) fn close(&mut self, id: Option<String>) -> String {
        match id {
            Some(id) => {
                self.open.retain(|open| *open != id);
                id
            }
            None => self.open.pop_front().unwrap_or_else(|| self.make_up()),
        }
    }

    /// A call and its end in one.
    pub(super) fn at_once(&mut self, id: Option<String>) -> String {
        id.unwrap_or_else(|| self.make_up())
    }

    fn make_up(&mut self) -> String {
        self.made_up += 1;
        format!("call-{}", self.made_up)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_without_a_name_belongs_to_the_first_open_call() {
        let mut calls = ToolCallIds::default();
        assert_eq!(calls.open(None), "call-1");
        assert_eq!(calls.open(Some("x".to_owned())), "x");
        assert_eq!(calls.open(None), "call-2");
        assert_eq!(calls.close(Some("x".to_owned())), "x");
        assert_eq!(calls.close(None), "call-1");
        assert_eq!(calls.close(None), "call-2");
        assert_eq!(calls.close(None), "call-3");
    }
}

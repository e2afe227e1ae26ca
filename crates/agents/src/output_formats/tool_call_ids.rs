//! Ids of tool calls, so that a result finds its call even if the program gives no ids.

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

    /// A tool has ended. Without an id it is the call that has been open for longest.
    pub(super) fn close(&mut self, id: Option<String>) -> String {
        match id {
            Some(id) => {
                self.open.retain(|open| *open != id);
                id
            }
            None => self.open.pop_front().unwrap_or_else(|| self.make_up()),
        }
    }

    /// A call that is reported only when it has ended.
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

//! What of a program did not reach its caller: lines that mean nothing, files that are too many or too large.
//!
//! The task says so while it runs and at its end. Both are bounded: a program may print a million lines.

/// So many are named, the rest is counted.
const NAMED: usize = 5;
/// What is shown of a line.
const LONGEST: usize = 200;

#[derive(Debug, Default)]
pub(super) struct Notes {
    named: Vec<String>,
    more: usize,
}

impl Notes {
    /// Keeps a note. Gives it back if the caller is to hear of it now.
    pub fn add(&mut self, note: String) -> Option<String> {
        if self.named.len() == NAMED {
            self.more += 1;
            return None;
        }
        self.named.push(note.clone());
        Some(note)
    }

    /// All that was noted, in words.
    pub fn take(&mut self) -> Vec<String> {
        let Self { mut named, more } = std::mem::take(self);
        match more {
            0 => {}
            more => named.push(format!("{more} more of this kind are not listed")),
        }
        named
    }

    /// A reason with the notes behind it.
    pub fn behind(&mut self, reason: String) -> String {
        std::iter::once(reason).chain(self.take()).collect::<Vec<_>>().join("\n")
    }
}

/// The beginning of a line.
pub(super) fn cut(line: &str) -> String {
    match line.char_indices().nth(LONGEST) {
        None => line.to_owned(),
        Some((end, _)) => format!("{}…", &line[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_are_named_and_the_rest_is_counted() {
        for (count, expected) in [(0, 0), (1, 1), (NAMED, NAMED), (NAMED + 1, NAMED + 1), (100_000, NAMED + 1)] {
            let mut notes = Notes::default();
            let told = (0..count).filter_map(|number| notes.add(number.to_string())).count();
            assert_eq!(told, count.min(NAMED));
            let taken = notes.take();
            assert_eq!(taken.len(), expected, "{count}");
            let more = count.saturating_sub(NAMED);
            assert!(more < 2 || taken.last().unwrap().contains(&more.to_string()), "{taken:?}");
        }
    }

    #[test]
    fn a_long_line_is_cut() {
        assert_eq!(cut("short"), "short");
        assert_eq!(cut(&"ä".repeat(LONGEST + 1)), format!("{}…", "ä".repeat(LONGEST)));
    }
}

//! Notes about what did not reach the caller: lines that are not understood, files that are too many or too large.
//!
//! The task shows them while it runs and at its end. Their number is limited: a program may print a million lines.

/// How many notes are shown; the rest is counted.
const NAMED: usize = 5;
/// How many characters of a line are shown.
const LONGEST: usize = 200;

#[derive(Debug, Default)]
pub(super) struct Notes {
    named: Vec<String>,
    more: usize,
}

impl Notes {
    /// Adds a note. Returns it if the caller should see it now.
    pub fn add(&mut self, note: String) -> Option<String> {
        if self.named.len() == NAMED {
            self.more += 1;
            return None;
        }
        self.named.push(note.clone());
        Some(note)
    }

    /// All notes, and the number of those that were left out.
    pub fn take(&mut self) -> Vec<String> {
        let Self { mut named, more } = std::mem::take(self);
        match more {
            0 => {}
            more => named.push(format!("{more} more of this kind are not listed")),
        }
        named
    }

    /// A reason followed by the notes.
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
            let shown = (0..count).filter_map(|number| notes.add(number.to_string())).count();
            assert_eq!(shown, count.min(NAMED));
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

//! Text that arrives twice: in pieces while the model writes it, and then as a whole.
//!
//! A program may leave out either form, stop the pieces and send the whole, or start again. What was reported stays; only
//! the missing part is added.

#[derive(Debug, Default)]
pub(super) struct StreamedText(String);

impl StreamedText {
    /// The pieces of a new message begin.
    pub(super) fn restart(&mut self) {
        self.0.clear();
    }

    pub(super) fn piece(&mut self, piece: &str) {
        self.0.push_str(piece);
    }

    /// The part of the whole text that did not come in pieces.
    pub(super) fn missing_part<'a>(&mut self, whole: &'a str) -> &'a str {
        // Pieces of several blocks may come before the first whole one.
        if self.0.starts_with(whole) {
            self.0.drain(..whole.len());
            return "";
        }
        let told = std::mem::take(&mut self.0);
        if whole.trim() == told.trim() {
            return "";
        }
        whole.strip_prefix(told.as_str()).unwrap_or(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_told_twice() {
        for (pieces, wholes, expected) in [
            (&["a ", "b"][..], &["a b"][..], &[""][..]),
            (&[], &["a b"], &["a b"]),
            (&["a ", "b"], &["a ", "b", "c"], &["", "", "c"]),
            (&["Hello "], &["Hello there"], &["there"]),
            (&["a b\n"], &["a b", "c"], &["", "c"]),
            (&[" a b"], &["a b"], &[""]),
            (&["thrown away"], &["a b"], &["a b"]),
        ] {
            let mut streamed = StreamedText::default();
            pieces.iter().for_each(|piece| streamed.piece(piece));
            let rests: Vec<&str> = wholes.iter().map(|whole| streamed.missing_part(whole)).collect();
            assert_eq!(rests, expected, "{pieces:?} then {wholes:?}");
        }
    }
}

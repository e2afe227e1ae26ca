//! Masks secrets in what a server says of an error: some repeat what they were sent.

use sabir_model::Base64;
use sabir_wire::percent_encode;

use super::secret::Secret;

/// The text that replaces a secret.
const MASK: &str = "***";

/// Secrets that were sent.
#[derive(Clone, Default)]
pub(super) struct Mask(Vec<String>);

impl Mask {
    /// Adds a secret in all forms in which a request holds it.
    pub fn add(&mut self, secret: &Secret) {
        let text = secret.as_str();
        if !text.is_empty() {
            self.0.extend([text.to_owned(), percent_encode(text).into_owned()]);
            self.0.push(Base64::encode(text.as_bytes()).as_str().to_owned());
            // One secret may be the beginning of another.
            self.0.sort_by_key(|form| std::cmp::Reverse(form.len()));
        }
    }

    pub fn apply(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, form| text.replace(form, MASK))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked_in_every_form() {
        let mut mask = Mask::default();
        for secret in ["s&cret", "s&cret of two", ""] {
            mask.add(&Secret::new(secret));
        }
        for (text, expected) in [
            ("nothing", "nothing"),
            ("the secret is s&cret", "the secret is ***"),
            ("s&cret of two, s&cret", "***, ***"),
            ("s%26cret", "***"),
            ("cyZjcmV0", "***"),
        ] {
            assert_eq!(mask.apply(text), expected);
        }
    }
}

//! The words of a command: the first one is the server if it is a URL, unless a flag names the server.

use sabir_model::TaskId;

use super::failure::Failure;
use crate::cli::ServerName;

/// The server, if the words name it, and the other words.
pub fn split<'w>(words: &'w [String], server: &ServerName) -> (Option<&'w str>, &'w [String]) {
    match words {
        [first, rest @ ..] if server.agent_card.is_none() && is_url(first) => (Some(first), rest),
        words => (None, words),
    }
}

/// The same for commands about one task.
pub fn split_task<'w>(
    words: &'w [String],
    server: &ServerName,
) -> Result<(Option<&'w str>, TaskId, &'w [String]), Failure> {
    match split(words, server) {
        (url, [task, rest @ ..]) => match TaskId::parse(task.as_str()) {
            Ok(id) => Ok((url, id, rest)),
            Err(error) => Err(Failure::usage(format!("the id of a task {error}"))),
        },
        (_, []) => Err(Failure::usage("which task? its id is missing")),
    }
}

/// For commands that take nothing but the task.
pub fn only_task<'w>(words: &'w [String], server: &ServerName) -> Result<(Option<&'w str>, TaskId), Failure> {
    match split_task(words, server)? {
        (url, task, []) => Ok((url, task)),
        _ => Err(Failure::usage("the first of two words must be the URL of a server, such as http://127.0.0.1:41242")),
    }
}

/// A scheme, `://`, and no white space: a text that has a URL in it is none.
fn is_url(word: &str) -> bool {
    let Some((scheme, rest)) = word.split_once("://") else { return false };
    let is_scheme = scheme.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+.-".contains(&byte));
    is_scheme && !rest.is_empty() && !word.contains(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_is_the_server_if_it_is_a_url() {
        for (words, expected) in [
            (&["http://a", "t", "x"][..], "Some(\"http://a\") t [\"x\"]"),
            (&["t", "http://a"], "None t [\"http://a\"]"),
            (&["see http://a"], "None see http://a []"),
            (&["http://a b"], "None http://a b []"),
            (&["1://a"], "None 1://a []"),
            (&["://a"], "None ://a []"),
            (&["http://"], "None http:// []"),
            (&["ftp://a", "t"], "Some(\"ftp://a\") t []"),
            (&["http://a"], "which task? its id is missing"),
            (&["", "x"], "the id of a task must not be empty"),
        ] {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            let actual = match split_task(&words, &ServerName::default()) {
                Ok((url, task, rest)) => format!("{url:?} {task} {rest:?}"),
                Err(failure) => failure.message,
            };
            assert_eq!(actual, expected, "{words:?}");
        }
        let named = ServerName { agent_card: Some("a".into()), ..ServerName::default() };
        let words = ["http://x".to_owned()];
        assert_eq!(split(&words, &named), (None, &words[..]));
        let two = ["a".to_owned(), "b".to_owned()];
        assert!(only_task(&two, &ServerName::default()).unwrap_err().message.contains("the first of two words"));
    }
}

//! What chat programs ask models for beside the conversation: a title, tags, suggestions. No agent runs for these.
//!
//! Open WebUI and LibreChat send such requests to the model of the conversation, often several after each answer. They look like any
//! other message, so they are recognised by the prompts that these programs have built in, and answered here in the form that the
//! prompt asks for. A prompt that an operator has rewritten is recognised as long as it keeps the marks below. In doubt a request is
//! a message for the agent.

use serde::Serialize;

use super::request::{ChatMessage, ChatRole};
use crate::words::one_line;

/// The title of a conversation is its first words.
const TITLE_WORDS: usize = 6;
const LONGEST_TITLE: usize = 60;
const NO_TITLE: &str = "New chat";

/// Of Open WebUI: how its prompts begin, and where they quote the conversation.
const TASK: &str = "### Task:";
const HISTORY: [&str; 2] = ["<chat_history>", "</chat_history>"];
const EMOJI: &str = "Your task is to reflect the speaker's likely facial expression through a fitting emoji";
const TOOLS: &str = "Available Tools:";

/// Of LibreChat: how its prompts for titles begin.
const TITLE_PROMPTS: [&str; 4] = [
    "Provide a concise, 5-word-or-less title for the conversation",
    "Please generate a concise, 5-word-or-less title for the conversation",
    "Analyze this conversation and provide:\n1. The detected language of the conversation\n2. A concise title",
    "Write a concise title for this conversation",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SideRequest {
    Title,
    /// The same as words alone.
    PlainTitle,
    Tags,
    FollowUps,
    SearchQueries,
    ImagePrompt,
    Completion,
    Emoji,
    ToolChoice,
}

/// The members of an Open WebUI prompt's output, and what it asks for by them. The first that is there decides.
const OUTPUTS: [(&str, SideRequest); 5] = [
    ("\"follow_ups\"", SideRequest::FollowUps),
    ("\"queries\"", SideRequest::SearchQueries),
    ("\"tags\"", SideRequest::Tags),
    ("\"title\"", SideRequest::Title),
    ("\"prompt\"", SideRequest::ImagePrompt),
];

/// The answer to a request that is none for the agent; `None`: it is one.
pub(crate) fn answer(messages: &[ChatMessage]) -> Option<String> {
    // Such a prompt quotes the conversation and does not continue it.
    if messages.iter().any(|message| matches!(message.role, ChatRole::Assistant | ChatRole::Tool)) {
        return None;
    }
    let mut texts = messages.iter().map(ChatMessage::text);
    texts.find_map(|text| Some(SideRequest::of(text.trim_start())?.answered(&text)))
}

impl SideRequest {
    fn of(text: &str) -> Option<Self> {
        if TITLE_PROMPTS.iter().any(|prompt| starts_with(text, prompt)) {
            return Some(Self::PlainTitle);
        }
        if starts_with(text, EMOJI) {
            return Some(Self::Emoji);
        }
        if starts_with(text, TOOLS) && text.contains("\"tool_calls\"") {
            return Some(Self::ToolChoice);
        }
        let head = text.strip_prefix(TASK)?.split(HISTORY[0]).next()?;
        if !HISTORY.iter().all(|mark| text.contains(mark)) {
            return None;
        }
        if head.contains("autocompletion system") {
            return Some(Self::Completion);
        }
        OUTPUTS.iter().find(|(member, _)| head.contains(member)).map(|(_, request)| *request)
    }

    fn answered(self, prompt: &str) -> String {
        match self {
            Self::Title => json(&Titled { title: &title_of(prompt) }),
            Self::PlainTitle => title_of(prompt),
            Self::Tags => r#"{"tags": ["General"]}"#.to_owned(),
            Self::FollowUps => r#"{"follow_ups": []}"#.to_owned(),
            Self::SearchQueries => r#"{"queries": []}"#.to_owned(),
            Self::ImagePrompt => json(&ImagePrompt { prompt: &first_words(prompt).unwrap_or_default() }),
            Self::Completion => r#"{"text": ""}"#.to_owned(),
            Self::Emoji => "💬".to_owned(),
            Self::ToolChoice => r#"{"tool_calls": []}"#.to_owned(),
        }
    }
}

#[derive(Serialize)]
struct Titled<'a> {
    title: &'a str,
}

#[derive(Serialize)]
struct ImagePrompt<'a> {
    prompt: &'a str,
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("text is JSON")
}

fn starts_with(text: &str, start: &str) -> bool {
    text.get(..start.len()).is_some_and(|own| own.eq_ignore_ascii_case(start))
}

/// The first words of the conversation that a prompt quotes.
fn title_of(prompt: &str) -> String {
    let Some(words) = first_words(prompt) else { return NO_TITLE.to_owned() };
    let mut all = words.split(' ');
    let mut title = all.by_ref().take(TITLE_WORDS).collect::<Vec<_>>().join(" ");
    if all.next().is_some() {
        title.push('…');
    }
    one_line(&title, LONGEST_TITLE)
}

/// What the user says first in the conversation that a prompt quotes, on one line; `None`: that is not found.
fn first_words(prompt: &str) -> Option<String> {
    let quoted = match prompt.split_once(HISTORY[0]) {
        Some((_, quoted)) => quoted.split(HISTORY[1]).next().unwrap_or_default(),
        None => prompt,
    };
    let mut lines = quoted.lines().skip_while(|line| words_of_user(line).is_none());
    let first = words_of_user(lines.next()?)?;
    // A message may have lines before the next speaker.
    let rest = lines.take_while(|line| words_of_user(line).is_none() && !begins_words_of_model(line));
    let words = std::iter::once(first).chain(rest).collect::<Vec<_>>().join(" ");
    let words = one_line(words.trim().trim_matches(['"', '#', '*', '`']), 400);
    (!words.is_empty()).then_some(words)
}

/// What follows the name of the user at the beginning of a line.
fn words_of_user(line: &str) -> Option<&str> {
    let line = line.trim_start_matches("||>");
    ["User:", "Human:"].iter().find(|name| starts_with(line, name)).map(|name| line[name.len()..].trim())
}

fn begins_words_of_model(line: &str) -> bool {
    let line = line.trim_start_matches("||>");
    ["Assistant:", "AI:", "Response:"].iter().any(|name| starts_with(line, name))
}

#[cfg(test)]
mod tests {
    use sabir_model::Part;

    use super::*;

    fn asked(role: ChatRole, text: &str) -> Option<String> {
        answer(&[ChatMessage { role, parts: vec![Part::text(text)] }])
    }

    /// The marks of a prompt as Open WebUI words it, around our own words.
    fn webui(task: &str, output: &str) -> String {
        format!(
            "### Task:\n{task}\n### Output:\nJSON format: {output}\n### Chat History:\n<chat_history>\n\
             USER: How do I *bake*\nbread at home without an oven?\nASSISTANT: {{\"title\": \"tags\"}}\n</chat_history>"
        )
    }

    #[test]
    fn prompts_of_open_webui_are_answered_in_their_form() {
        for (task, output, expected) in [
            ("Generate a title", r#"{ "title": "a title" }"#, r#"{"title":"How do I *bake* bread at…"}"#),
            ("Generate 1-3 broad tags", r#"{ "tags": ["a"] }"#, r#"{"tags": ["General"]}"#),
            ("Suggest 3-5 questions", r#"{ "follow_ups": ["a?"] }"#, r#"{"follow_ups": []}"#),
            ("Analyze the chat history for search queries", r#"{ "queries": ["a"] }"#, r#"{"queries": []}"#),
            ("You are an autocompletion system.", r#"{ "text": "a" }"#, r#"{"text": ""}"#),
            (
                "Generate a detailed prompt for an image",
                r#"{ "prompt": "a" }"#,
                r#"{"prompt":"How do I *bake* bread at home without an oven?"}"#,
            ),
        ] {
            assert_eq!(asked(ChatRole::User, &webui(task, output)).as_deref(), Some(expected), "{task}");
        }
        assert_eq!(asked(ChatRole::User, &format!("{EMOJI}. Message: ```hi```")).as_deref(), Some("💬"));
        let tools = format!("{TOOLS} []\nReturn {{\"tool_calls\": []}}");
        assert_eq!(asked(ChatRole::System, &tools).as_deref(), Some(r#"{"tool_calls": []}"#));
    }

    #[test]
    fn prompts_of_librechat_are_answered_with_the_words_of_the_title() {
        for (prompt, expected) in [
            (
                "Provide a concise, 5-word-or-less title for the conversation, using title case conventions.\n\n\
                 Conversation:\nUser: plan a trip\nAI: gladly",
                "plan a trip",
            ),
            (
                "Please generate a concise, 5-word-or-less title for the conversation, in its language.\n\
                 ||>User:\n\"plan a trip\"\n||>Response:\n\"gladly\"",
                "plan a trip",
            ),
            (
                "Analyze this conversation and provide:\n1. The detected language of the conversation\n2. A concise title in it\n\n\
                 User: eins zwei drei vier fünf sechs sieben\nAI: acht",
                "eins zwei drei vier fünf sechs…",
            ),
            ("Write a concise title for this conversation.\n", NO_TITLE),
        ] {
            assert_eq!(asked(ChatRole::User, prompt).as_deref(), Some(expected), "{prompt}");
        }
    }

    #[test]
    fn what_only_looks_like_a_prompt_is_for_the_agent() {
        let title = webui("Generate a title", r#"{ "title": "a" }"#);
        for text in [
            "### Task:\nwrite a parser that returns {\"title\": 1}",
            "### Task:\nread <chat_history> and </chat_history>",
            "Give the conversation a title",
            &format!("Look at this: {title}"),
            "Available Tools: hammer",
        ] {
            assert_eq!(asked(ChatRole::User, text), None, "{text}");
        }
        let user = |text: &str| ChatMessage { role: ChatRole::User, parts: vec![Part::text(text)] };
        let model = ChatMessage { role: ChatRole::Assistant, parts: vec![Part::text("yes?")] };
        assert_eq!(answer(&[user("hi"), model, user(&title)]), None);
    }
}

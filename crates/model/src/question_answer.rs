//! What a caller's message says about a question: the one schema of answers, and its one reader.
//!
//! A message answers in words, in data parts, or in both:
//!
//! | what                     | in a data part                                             | in words               |
//! |--------------------------|------------------------------------------------------------|------------------------|
//! | which question           | `questionId`                                               |                        |
//! | yes, no, always or never | `approved: true`, or a word as `verdict`                   | a lone word            |
//! | one of the choices       | `optionId`: its id, its name or its number                 | its id, name or number |
//! | what else there is       | `reason`                                                   | any other words        |
//!
//! Other servers have other names for these members, which are read too (`evidence.rs`). A no anywhere wins over a yes
//! anywhere: in any part, at any depth, under a name that is there twice, in a file that is text or JSON, in the metadata of
//! the message, of its parts and of the request. A yes counts in words and data parts alone. Only a clear yes grants
//! permission; anything else denies it, also a yes beside something that cannot be read here: data or a text of more than
//! 64 KiB, a file of which only the address is given.

mod evidence;
mod words;

use crate::question::{QuestionId, may_be_id};
use crate::{Content, Json, Message};
use evidence::Evidence;
use words::{Word, is_no};

/// An answer is small. Longer data is content: it is not read, and grants nothing.
const LONGEST: usize = 64 * 1024;

/// What is said about a wish to act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Yes,
    No,
    /// Yes, and do not ask again in this session.
    Always,
    /// No, and do not ask again in this session.
    Never,
    /// Neither is clearly said.
    None,
}

/// One of the answers that a question offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    pub id: String,
    pub name: String,
    pub kind: ChoiceKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChoiceKind {
    AllowOnce,
    AllowAlways,
    RejectOnce,
    RejectAlways,
    /// An answer that neither allows nor rejects, such as a colour.
    Other,
}

impl ChoiceKind {
    const ALL: [ChoiceKind; 5] = [
        ChoiceKind::AllowOnce,
        ChoiceKind::AllowAlways,
        ChoiceKind::RejectOnce,
        ChoiceKind::RejectAlways,
        ChoiceKind::Other,
    ];

    /// Its name in the data part of a question.
    pub fn name(self) -> &'static str {
        match self {
            ChoiceKind::AllowOnce => "allow_once",
            ChoiceKind::AllowAlways => "allow_always",
            ChoiceKind::RejectOnce => "reject_once",
            ChoiceKind::RejectAlways => "reject_always",
            ChoiceKind::Other => "other",
        }
    }

    /// The kind of this name; any other name says no more than that it is a choice.
    pub fn parse(name: &str) -> Self {
        Self::ALL.into_iter().find(|kind| kind.name() == name).unwrap_or(ChoiceKind::Other)
    }

    pub fn allows(self) -> bool {
        matches!(self, ChoiceKind::AllowOnce | ChoiceKind::AllowAlways)
    }

    pub fn rejects(self) -> bool {
        matches!(self, ChoiceKind::RejectOnce | ChoiceKind::RejectAlways)
    }

    fn verdict(self) -> Option<Verdict> {
        match self {
            ChoiceKind::AllowOnce => Some(Verdict::Yes),
            ChoiceKind::AllowAlways => Some(Verdict::Always),
            ChoiceKind::RejectOnce => Some(Verdict::No),
            ChoiceKind::RejectAlways => Some(Verdict::Never),
            ChoiceKind::Other => None,
        }
    }
}

/// What a message says about a question that offers some choices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuestionAnswer {
    pub verdict: Verdict,
    /// The place of the choice that is taken. Of a question for permission that is always one that the verdict means, if
    /// there is any.
    pub choice: Option<usize>,
    /// What is said besides.
    pub words: Option<String>,
}

impl QuestionAnswer {
    pub fn read(message: &Message, choices: &[Choice]) -> Self {
        let mut evidence = Evidence::default();
        for part in &message.parts {
            if let Content::Data(data) = &part.content {
                evidence.add_data(data, LONGEST);
            }
        }
        let text = message.text();
        let text = text.trim();
        let texts: Vec<&str> = message.parts.iter().filter_map(|part| part.as_text()).collect();
        let is_choice = find(choices, text).is_some();
        if is_choice && !is_no(text) {
            // Its name may have any words in it: "Yes, and don't ask again".
            evidence.options.push(text.to_owned());
        } else {
            evidence.add_text(&texts, text);
            evidence.options.extend(is_choice.then(|| text.to_owned()));
        }
        if choices.iter().any(|choice| choice.kind != ChoiceKind::Other) {
            evidence.add_aside(message, LONGEST);
            evidence.permission(choices)
        } else {
            evidence.input(choices, text)
        }
    }

    /// What a data part says by itself about a question whose choices are not known.
    pub fn verdict_of(data: &Json) -> Verdict {
        let mut evidence = Evidence::default();
        evidence.add_data(data, LONGEST);
        evidence.is_unclear |= evidence.options.iter().any(|option| Word::of(option).is_none());
        evidence.verdict()
    }
}

/// The choice that means this verdict: once rather than for ever, where only yes or no is said.
pub fn choice_of(choices: &[Choice], verdict: Verdict) -> Option<usize> {
    use ChoiceKind::{AllowAlways, AllowOnce, RejectAlways, RejectOnce};
    let kinds = match verdict {
        Verdict::Yes => [AllowOnce, AllowAlways],
        Verdict::Always => [AllowAlways, AllowOnce],
        Verdict::No | Verdict::None => [RejectOnce, RejectAlways],
        Verdict::Never => [RejectAlways, RejectOnce],
    };
    kinds.iter().find_map(|kind| choices.iter().position(|choice| choice.kind == *kind))
}

/// The choice of this id, name or number.
fn find(choices: &[Choice], text: &str) -> Option<usize> {
    let same = |other: &str| other.trim().eq_ignore_ascii_case(text);
    let by_id = choices.iter().position(|choice| same(&choice.id));
    let by_name = || choices.iter().position(|choice| same(&choice.name));
    let by_number = || text.parse::<usize>().ok()?.checked_sub(1).filter(|place| *place < choices.len());
    by_id.or_else(by_name).or_else(by_number).filter(|_| !text.is_empty())
}

impl Evidence {
    fn verdict(&self) -> Verdict {
        match self {
            Evidence { never: true, yes: false, always: false, no: false, .. } => Verdict::Never,
            Evidence { no: true, .. } | Evidence { never: true, .. } => Verdict::No,
            Evidence { is_unclear: true, .. } => Verdict::None,
            Evidence { always: true, .. } => Verdict::Always,
            Evidence { yes: true, .. } => Verdict::Yes,
            _ => Verdict::None,
        }
    }

    /// The answer to a question for permission.
    fn permission(mut self, choices: &[Choice]) -> QuestionAnswer {
        let mut chosen: Vec<usize> = Vec::new();
        for option in std::mem::take(&mut self.options) {
            match find(choices, option.trim()) {
                // Whatever the agent calls "no": who says no does not allow it.
                Some(place) if is_no(&option) && !choices[place].kind.rejects() => self.no = true,
                Some(place) => {
                    if let Some(verdict) = choices[place].kind.verdict() {
                        self.note(verdict);
                    }
                    if !chosen.contains(&place) {
                        chosen.push(place);
                    }
                }
                None if Word::of(&option).is_some() => {}
                None => {
                    self.is_unclear = true;
                    self.words.push(option);
                }
            }
        }
        let verdict = self.verdict();
        let fits = |place: &usize| match verdict {
            Verdict::Yes | Verdict::Always => choices[*place].kind.allows(),
            Verdict::No | Verdict::Never => choices[*place].kind.rejects(),
            Verdict::None => !self.is_unclear && choices[*place].kind == ChoiceKind::Other,
        };
        let fitting: Vec<usize> = chosen.into_iter().filter(fits).collect();
        let choice = match fitting[..] {
            [only] => Some(only),
            // Several that allow: the narrowest of them.
            [_, ..] if verdict == Verdict::Always => choice_of(choices, Verdict::Yes),
            _ => choice_of(choices, verdict),
        };
        QuestionAnswer { verdict, choice, words: self.words() }
    }

    /// The answer to a question that wants to know something: words are as good as a choice.
    fn input(self, choices: &[Choice], text: &str) -> QuestionAnswer {
        let mut chosen: Vec<usize> = Vec::new();
        for option in &self.options {
            if let Some(place) = find(choices, option.trim()).filter(|place| !chosen.contains(place)) {
                chosen.push(place);
            }
        }
        let says_no = |place: &&usize| is_no(&choices[**place].id) || is_no(&choices[**place].name);
        let choice = match chosen[..] {
            [only] => Some(only),
            _ => chosen.iter().find(says_no).copied(),
        };
        let verdict = self.verdict();
        let said = if text.is_empty() { self.options.join(", ") } else { text.to_owned() };
        let words = match (said.is_empty(), verdict) {
            (false, _) => Some(said),
            (true, Verdict::None) => self.words(),
            (true, Verdict::Yes | Verdict::Always) => Some("yes".to_owned()),
            (true, Verdict::No | Verdict::Never) => Some("no".to_owned()),
        };
        QuestionAnswer { verdict, choice, words }
    }

    fn words(&self) -> Option<String> {
        (!self.words.is_empty()).then(|| self.words.join("\n"))
    }
}

impl Message {
    /// Says yes or no and nothing else: a lone word, a data part in the shape of an answer, or both. Such a message
    /// means something only while its question is open. Sent to a task that asks nothing, it must neither start a turn
    /// nor wait for a later question, which its sender has not seen.
    pub fn is_only_approval(&self) -> bool {
        let mut approves = false;
        for part in &self.parts {
            match &part.content {
                Content::Text(text) if text.trim().is_empty() => {}
                Content::Text(text) if Word::of(text).is_some() => approves = true,
                Content::Data(data) if Evidence::of_data(data, LONGEST).is_answer => approves = true,
                Content::Text(_) | Content::Data(_) | Content::Bytes(_) | Content::Url(_) => return false,
            }
        }
        approves
    }

    /// The questions that the message names, of whichever task and wherever it does so: in a data part or in metadata,
    /// under any member. Names that do not have the form of Sabir's ids count as none.
    pub fn named_questions(&self) -> Vec<QuestionId> {
        let data = self.parts.iter().filter_map(|part| match &part.content {
            Content::Data(data) => Some(data),
            Content::Text(_) | Content::Bytes(_) | Content::Url(_) => None,
        });
        let names = data.chain(self.all_metadata()).flat_map(|json| Evidence::of_data(json, LONGEST).names);
        names.filter_map(|name| QuestionId::parse(&name)).collect()
    }

    /// Of its parts, its own, and of the request that brought it.
    fn all_metadata(&self) -> impl Iterator<Item = &Json> {
        let of_parts = self.parts.iter().filter_map(|part| part.metadata.as_ref());
        of_parts.chain(&self.metadata).chain(&self.request_metadata)
    }
}

#[cfg(test)]
mod tests;

//! Gathers what the parts of a message say for and against, member by member.
//!
//! A no counts wherever it stands. A yes counts only where an answer has it: at the top of a data part, or below members
//! that hold answers (`decision`, `result`, ...); data may have an `approved` somewhere inside that is about something else,
//! and metadata and files are about other things anyway.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use super::words::{Word, denies};
use super::{Verdict, may_be_id};
use crate::{Content, Json, Message};

#[derive(Debug, Default)]
pub(super) struct Evidence {
    pub(super) yes: bool,
    pub(super) no: bool,
    pub(super) always: bool,
    pub(super) never: bool,
    /// Something is said that is neither, where a verdict is expected.
    pub(super) is_unclear: bool,
    /// The data has the shape of an answer.
    pub(super) is_answer: bool,
    /// Ids, names or numbers of choices.
    pub(super) options: Vec<String>,
    pub(super) words: Vec<String>,
    /// Texts that may be ids of questions.
    pub(super) names: Vec<String>,
}

/// What a member is for, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Member {
    /// The data itself.
    Top,
    /// `true` grants.
    Grant,
    /// `true` refuses.
    Refusal,
    Always,
    Never,
    /// A word, a choice, or an object with more.
    Holder,
    /// The id of a choice.
    Option,
    /// The id of a question or a decision: only answers have them.
    Id,
    Words,
    Other,
}

impl Member {
    fn of(name: &str) -> Self {
        let name: String = name.chars().filter(|letter| letter.is_alphanumeric()).collect();
        let name = name.to_ascii_lowercase();
        match name.as_str() {
            "approved" | "approve" | "allow" | "allowed" | "accept" | "accepted" | "grant" | "granted" | "permit"
            | "permitted" | "confirm" | "confirmed" | "proceed" | "ok" | "yes" => Member::Grant,
            "denied" | "deny" | "rejected" | "reject" | "refused" | "refuse" | "declined" | "decline" | "cancel"
            | "cancelled" | "canceled" | "disallow" | "disallowed" | "blocked" | "block" | "abort" | "aborted"
            | "stop" | "no" => Member::Refusal,
            "always" => Member::Always,
            "never" => Member::Never,
            "verdict" | "decision" | "answer" | "choice" | "option" | "action" | "result" | "response" | "outcome"
            | "behavior" | "behaviour" | "status" | "state" | "value" | "output" => Member::Holder,
            "optionid" => Member::Option,
            "questionid" | "decisionid" => Member::Id,
            "reason" | "message" | "text" | "words" | "comment" | "note" | "notes" | "feedback" | "explanation" => {
                Member::Words
            }
            name => Self::like(name),
        }
    }

    /// Names that are made of such words: `isApproved`, `userDenied`, `disapproved`.
    fn like(name: &str) -> Self {
        const GRANTS: [&str; 7] = ["approv", "allow", "accept", "grant", "permi", "confirm", "consent"];
        const REFUSALS: [&str; 5] = ["deny", "denied", "reject", "refus", "declin"];
        const OPPOSITES: [&str; 3] = ["dis", "not", "un"];
        let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
        let opposes = GRANTS.iter().any(|word| {
            let before = name.split_once(word).map(|(before, _)| before);
            before.is_some_and(|before| OPPOSITES.iter().any(|opposite| before.ends_with(opposite)))
        });
        if opposes || has(&REFUSALS) {
            Member::Refusal
        } else if has(&GRANTS) {
            Member::Grant
        } else {
            Member::Other
        }
    }
}

impl Evidence {
    pub(super) fn of_data(data: &Json, longest: usize) -> Self {
        let mut evidence = Self::default();
        evidence.add_data(data, longest);
        evidence
    }

    pub(super) fn add_data(&mut self, data: &Json, longest: usize) {
        let text = data.as_str();
        let is_read = text.len() <= longest && self.walk(text, true);
        if !is_read {
            // There may be a no in it, and the name of a question.
            self.is_unclear = true;
            self.is_answer = false;
            self.names.extend(text.split('"').filter(|text| may_be_id(text)).map(str::to_owned));
        }
    }

    /// What stands beside the answer: metadata and files. Only a no counts there.
    pub(super) fn add_aside(&mut self, message: &Message, longest: usize) {
        for metadata in message.all_metadata() {
            let text = metadata.as_str();
            self.is_unclear |= text.len() > longest || !self.walk(text, false);
        }
        for part in &message.parts {
            match &part.content {
                Content::Text(_) | Content::Data(_) => {}
                Content::Bytes(bytes) => match String::from_utf8(bytes.decode()) {
                    Ok(text) if text.len() > longest => self.is_unclear = true,
                    Ok(text) => self.no |= !self.walk(&text, false) && denies(&text),
                    // A picture, or another file without words.
                    Err(_) => {}
                },
                // What is there is not known.
                Content::Url(_) => self.is_unclear = true,
            }
        }
    }

    /// Reads JSON; `false`: it is none, or too deep.
    fn walk(&mut self, text: &str, is_answer: bool) -> bool {
        let top = Walk { evidence: self, member: Member::Top, is_answer };
        top.deserialize(&mut serde_json::Deserializer::from_str(text)).is_ok()
    }

    /// The texts of a message, and all of them together.
    pub(super) fn add_text(&mut self, texts: &[&str], together: &str) {
        if together.is_empty() {
            return;
        }
        if let Some(verdict) = Word::of(together) {
            return self.note(verdict);
        }
        self.no |= denies(together) || texts.iter().any(|text| super::is_no(text));
        self.words.push(together.to_owned());
    }

    pub(super) fn note(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Yes => self.yes = true,
            Verdict::No => self.no = true,
            Verdict::Always => self.always = true,
            Verdict::Never => self.never = true,
            Verdict::None => {}
        }
    }
}

/// Reads one value, which stands under some member.
struct Walk<'e> {
    evidence: &'e mut Evidence,
    member: Member,
    /// It stands where an answer has it.
    is_answer: bool,
}

impl Walk<'_> {
    /// A verdict in a place for one: a yes counts only in an answer.
    fn decide(&mut self, verdict: Verdict) {
        let is_yes = matches!(verdict, Verdict::Yes | Verdict::Always);
        if !is_yes || self.is_answer {
            self.evidence.note(verdict);
        }
        self.evidence.is_answer |= self.is_answer;
    }

    fn unclear(&mut self) {
        self.evidence.is_unclear |= self.is_answer;
    }

    fn text(&mut self, text: &str) {
        if may_be_id(text) {
            self.evidence.names.push(text.to_owned());
        }
        let word = Word::of(text);
        match (self.member, word) {
            (Member::Id, _) => self.evidence.is_answer |= self.is_answer,
            (Member::Other, Some(Verdict::No | Verdict::Never)) => self.decide(Verdict::No),
            (Member::Other, _) => {}
            (Member::Words, _) if self.is_answer => {
                self.evidence.no |= denies(text);
                self.evidence.words.push(text.to_owned());
            }
            (Member::Words, _) => self.evidence.no |= super::is_no(text),
            (Member::Refusal, Some(Verdict::No | Verdict::Never)) => {}
            (Member::Refusal, _) if text.trim().is_empty() => {}
            (Member::Refusal, _) => self.decide(Verdict::No),
            (Member::Always, Some(Verdict::Yes | Verdict::Always)) => self.decide(Verdict::Always),
            (Member::Never, Some(Verdict::Yes | Verdict::Never)) => self.decide(Verdict::Never),
            (Member::Always | Member::Never, _) => {}
            (Member::Top | Member::Grant | Member::Holder | Member::Option, word) => {
                self.evidence.is_answer |= self.is_answer && self.member == Member::Option;
                match word {
                    Some(verdict) => self.decide(verdict),
                    // What the Agent Client Protocol says beside the id of the option.
                    None if text == "selected" => return,
                    None if self.member == Member::Grant || text.trim().is_empty() => self.unclear(),
                    None => self.evidence.no |= self.member == Member::Holder && denies(text),
                }
                if self.is_answer && self.member != Member::Grant && !text.trim().is_empty() {
                    self.evidence.options.push(text.to_owned());
                }
            }
        }
    }

    fn number(&mut self, text: String, is_zero: bool) {
        match self.member {
            Member::Grant if is_zero => self.decide(Verdict::No),
            Member::Grant => self.unclear(),
            Member::Holder | Member::Option if self.is_answer => self.evidence.options.push(text),
            Member::Refusal if !is_zero => self.decide(Verdict::No),
            _ => {}
        }
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(mut self, value: bool) -> Result<(), E> {
        match (self.member, value) {
            (Member::Top | Member::Grant | Member::Holder | Member::Option, true) => self.decide(Verdict::Yes),
            (Member::Top | Member::Grant | Member::Holder | Member::Option, false) => self.decide(Verdict::No),
            (Member::Refusal, true) => self.decide(Verdict::No),
            (Member::Always, true) => self.decide(Verdict::Always),
            (Member::Never, true) => self.decide(Verdict::Never),
            (Member::Refusal | Member::Always | Member::Never, false)
            | (Member::Id | Member::Words | Member::Other, _) => {}
        }
        Ok(())
    }

    fn visit_str<E>(mut self, text: &str) -> Result<(), E> {
        self.text(text);
        Ok(())
    }

    fn visit_u64<E>(mut self, number: u64) -> Result<(), E> {
        self.number(number.to_string(), number == 0);
        Ok(())
    }

    fn visit_i64<E>(mut self, number: i64) -> Result<(), E> {
        self.number(number.to_string(), number == 0);
        Ok(())
    }

    fn visit_f64<E>(mut self, number: f64) -> Result<(), E> {
        self.number(number.to_string(), number == 0.0);
        Ok(())
    }

    fn visit_unit<E>(mut self) -> Result<(), E> {
        if self.member == Member::Grant {
            self.unclear();
        }
        Ok(())
    }

    /// A list may name several choices of a question that takes several. It is no clear yes.
    fn visit_seq<A: SeqAccess<'de>>(mut self, mut values: A) -> Result<(), A::Error> {
        if matches!(self.member, Member::Grant | Member::Holder | Member::Option) {
            self.unclear();
        }
        let is_answer = self.is_answer && matches!(self.member, Member::Holder | Member::Option);
        loop {
            let value = Walk { evidence: &mut *self.evidence, member: self.member, is_answer };
            if values.next_element_seed(value)?.is_none() {
                return Ok(());
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let holds_answers = matches!(self.member, Member::Top | Member::Holder);
        while let Some(name) = members.next_key::<std::borrow::Cow<'de, str>>()? {
            if may_be_id(&name) {
                self.evidence.names.push(name.clone().into_owned());
            }
            members.next_value_seed(Walk {
                evidence: &mut *self.evidence,
                member: Member::of(&name),
                is_answer: self.is_answer && holds_answers,
            })?;
        }
        Ok(())
    }
}

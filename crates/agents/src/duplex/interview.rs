//! Several questions that a program asks at once, put to the caller one after the other.

use crate::update::{Choice, ChoiceKind, Question, Reply};

/// What a program is told that may use every tool without asking, and asks all the same.
pub(super) const NOBODY_CAN: &str =
    "Nobody can answer questions here. Decide by yourself, and say in your answer what you assumed.";

pub(super) struct Interview {
    /// The program's name for the whole of it.
    id: String,
    tool: String,
    topics: Vec<Topic>,
    answers: Vec<(String, String)>,
}

/// One of the questions.
pub(super) struct Topic {
    /// What the program looks its answer up by.
    pub(super) key: String,
    pub(super) text: String,
    /// Label and description of each proposed answer.
    pub(super) options: Vec<(String, Option<String>)>,
}

/// What comes after an answer.
pub(super) enum Next {
    Ask(Question),
    /// All is answered: the keys and their answers.
    Answered(Vec<(String, String)>),
    /// Nobody will answer the rest.
    GivenUp,
}

impl Interview {
    /// `None`: there is nothing to ask.
    pub(super) fn begin(id: String, tool: String, topics: Vec<Topic>) -> Option<(Self, Question)> {
        let interview = Self { id, tool, topics, answers: Vec::new() };
        let first = interview.question()?;
        Some((interview, first))
    }

    /// Whether this question is the one that waits for its answer.
    pub(super) fn asks(&self, question: &Question) -> bool {
        self.question_id() == question.id
    }

    pub(super) fn answer(&mut self, reply: &Reply) -> Next {
        let answer = match reply {
            Reply::Chosen { choice, said: None } => choice.clone(),
            Reply::Chosen { choice, said: Some(said) } => format!("{choice}: {said}"),
            Reply::Said(words) => words.clone(),
            Reply::Nobody => return Next::GivenUp,
        };
        if let Some(topic) = self.topics.get(self.answers.len()) {
            self.answers.push((topic.key.clone(), answer));
        }
        self.question().map_or_else(|| Next::Answered(std::mem::take(&mut self.answers)), Next::Ask)
    }

    fn question(&self) -> Option<Question> {
        let topic = self.topics.get(self.answers.len())?;
        let mut text = topic.text.clone();
        for (label, description) in &topic.options {
            if let Some(description) = description {
                text.push_str(&format!("\n- {label}: {description}"));
            }
        }
        let choice = |(label, _): &(String, Option<String>)| Choice {
            id: label.clone(),
            name: label.clone(),
            kind: ChoiceKind::Other,
        };
        Some(Question {
            id: self.question_id(),
            text,
            tool: Some(self.tool.clone()),
            input: None,
            choices: topic.options.iter().map(choice).collect(),
        })
    }

    pub(super) fn question_id(&self) -> String {
        match self.answers.len() {
            0 => self.id.clone(),
            later => format!("{}/{later}", self.id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topic(key: &str, options: &[&str]) -> Topic {
        let options = options.iter().map(|label| ((*label).to_owned(), None)).collect();
        Topic { key: key.into(), text: format!("{key}?"), options }
    }

    #[test]
    fn one_after_the_other() {
        let topics = vec![topic("colour", &["red", "blue"]), topic("size", &[]), topic("shape", &["round"])];
        let (mut interview, first) = Interview::begin("r".into(), "ask".into(), topics).unwrap();
        assert_eq!((first.id.as_str(), first.text.as_str(), first.choices.len()), ("r", "colour?", 2));
        let Next::Ask(second) = interview.answer(&Reply::Chosen { choice: "blue".into(), said: None }) else {
            panic!()
        };
        assert!(interview.asks(&second) && !interview.asks(&first));
        assert_eq!((second.text.as_str(), second.choices.len()), ("size?", 0));
        let Next::Ask(_) = interview.answer(&Reply::Said("large".into())) else { panic!() };
        let last = Reply::Chosen { choice: "round".into(), said: Some("but flat".into()) };
        let Next::Answered(answers) = interview.answer(&last) else { panic!() };
        let expected = [("colour", "blue"), ("size", "large"), ("shape", "round: but flat")];
        assert_eq!(answers, expected.map(|(key, answer)| (key.to_owned(), answer.to_owned())));
    }

    #[test]
    fn nobody_answers_the_rest() {
        let (mut interview, _) = Interview::begin("r".into(), "ask".into(), vec![topic("a", &[])]).unwrap();
        assert!(matches!(interview.answer(&Reply::Nobody), Next::GivenUp));
        assert!(Interview::begin("r".into(), "ask".into(), vec![]).is_none());
    }
}

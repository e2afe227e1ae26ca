//! Several questions in one request of a program, asked one after the other.

use crate::update::{Choice, ChoiceKind, Question, Reply};

/// The answer to a program that may use every tool without asking, and asks something else.
pub(super) const NOBODY_ANSWERS: &str =
    "Nobody can answer questions here. Decide by yourself, and say in your answer what you assumed.";

pub(super) struct QuestionSeries {
    /// The program's id of the request.
    id: String,
    tool: String,
    questions: Vec<SeriesQuestion>,
    answers: Vec<(String, String)>,
}

/// One of the questions.
pub(super) struct SeriesQuestion {
    /// The key of its answer.
    pub(super) key: String,
    pub(super) text: String,
    /// Label and description of each proposed answer.
    pub(super) options: Vec<(String, Option<String>)>,
}

/// What comes after an answer.
pub(super) enum Next {
    Ask(Question),
    /// All questions are answered: the keys and their answers.
    Answered(Vec<(String, String)>),
    /// Nobody will answer the rest.
    Unanswered,
}

impl QuestionSeries {
    /// `None`: there is nothing to ask.
    pub(super) fn begin(id: String, tool: String, questions: Vec<SeriesQuestion>) -> Option<(Self, Question)> {
        let series = Self { id, tool, questions, answers: Vec::new() };
        let first = series.question()?;
        Some((series, first))
    }

    /// Whether this question is the one that waits for its answer.
    pub(super) fn asks(&self, question: &Question) -> bool {
        self.question_id() == question.id
    }

    pub(super) fn answer(&mut self, reply: &Reply) -> Next {
        let answer = match reply {
            Reply::Chosen { choice, comment: None } => choice.clone(),
            Reply::Chosen { choice, comment: Some(said) } => format!("{choice}: {said}"),
            Reply::Text(words) => words.clone(),
            Reply::Unanswered => return Next::Unanswered,
        };
        if let Some(topic) = self.questions.get(self.answers.len()) {
            self.answers.push((topic.key.clone(), answer));
        }
        self.question().map_or_else(|| Next::Answered(std::mem::take(&mut self.answers)), Next::Ask)
    }

    fn question(&self) -> Option<Question> {
        let topic = self.questions.get(self.answers.len())?;
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

    fn topic(key: &str, options: &[&str]) -> SeriesQuestion {
        let options = options.iter().map(|label| ((*label).to_owned(), None)).collect();
        SeriesQuestion { key: key.into(), text: format!("{key}?"), options }
    }

    #[test]
    fn one_after_the_other() {
        let questions = vec![topic("colour", &["red", "blue"]), topic("size", &[]), topic("shape", &["round"])];
        let (mut series, first) = QuestionSeries::begin("r".into(), "ask".into(), questions).unwrap();
        assert_eq!((first.id.as_str(), first.text.as_str(), first.choices.len()), ("r", "colour?", 2));
        let Next::Ask(second) = series.answer(&Reply::Chosen { choice: "blue".into(), comment: None }) else {
            panic!()
        };
        assert!(series.asks(&second) && !series.asks(&first));
        assert_eq!((second.text.as_str(), second.choices.len()), ("size?", 0));
        let Next::Ask(_) = series.answer(&Reply::Text("large".into())) else { panic!() };
        let last = Reply::Chosen { choice: "round".into(), comment: Some("but flat".into()) };
        let Next::Answered(answers) = series.answer(&last) else { panic!() };
        let expected = [("colour", "blue"), ("size", "large"), ("shape", "round: but flat")];
        assert_eq!(answers, expected.map(|(key, answer)| (key.to_owned(), answer.to_owned())));
    }

    #[test]
    fn nobody_answers_the_rest() {
        let (mut series, _) = QuestionSeries::begin("r".into(), "ask".into(), vec![topic("a", &[])]).unwrap();
        assert!(matches!(series.answer(&Reply::Unanswered), Next::Unanswered));
        assert!(QuestionSeries::begin("r".into(), "ask".into(), vec![]).is_none());
    }
}

//! A program that is started for one turn, told what to do, and listened to until it ends.

use crate::lenient_json::Object;
use crate::protocol::{Exit, Protocol, Step};
use crate::update::Update;

/// What the lines of one program mean.
pub(crate) trait Vocabulary: Send {
    fn read(&mut self, line: &Object) -> Vec<Update>;

    /// A line that is no JSON object: a banner, a warning, a line that was cut.
    fn read_plain(&mut self, _line: &str) -> Vec<Update> {
        vec![]
    }

    /// The program has ended without a word about it.
    fn ended(&mut self, _exit: &Exit) -> Option<Update> {
        None
    }
}

pub(super) struct OneShot<V> {
    input: Option<String>,
    vocabulary: V,
    is_over: bool,
}

impl<V: Vocabulary + 'static> OneShot<V> {
    /// The prompt goes to its standard input, where it is neither visible to others nor limited nor taken for a flag.
    pub(super) fn told(input: String, vocabulary: V) -> Box<dyn Protocol> {
        Box::new(Self { input: Some(input), vocabulary, is_over: false })
    }

    /// The prompt stands on its command line.
    pub(super) fn called(vocabulary: V) -> Box<dyn Protocol> {
        Box::new(Self { input: None, vocabulary, is_over: false })
    }
}

impl<V: Vocabulary> Protocol for OneShot<V> {
    fn begin(&mut self) -> Vec<Step> {
        // Several programs wait for the end of their input even when they have been told everything.
        self.input.take().map(Step::Write).into_iter().chain([Step::CloseInput]).collect()
    }

    fn hear(&mut self, line: &str) -> Vec<Step> {
        let updates = match Object::parse(line) {
            Some(object) => self.vocabulary.read(&object),
            None => self.vocabulary.read_plain(line),
        };
        tell(updates, &mut self.is_over)
    }

    /// All of them take the session as an argument.
    fn is_resumable(&self) -> bool {
        true
    }

    fn ended(&mut self, exit: &Exit) -> Option<Update> {
        if self.is_over { None } else { self.vocabulary.ended(exit) }
    }
}

/// A turn ends once; whatever a program says behind that is not part of it.
pub(super) fn tell(updates: Vec<Update>, is_over: &mut bool) -> Vec<Step> {
    let mut steps = vec![];
    for update in updates {
        if *is_over {
            break;
        }
        *is_over = matches!(update, Update::Done { .. } | Update::Failed(_) | Update::Interrupted);
        steps.push(Step::Tell(update));
    }
    steps
}

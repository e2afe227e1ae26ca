//! A program that is started for one turn, told what to do, and listened to until it ends.

use crate::adapter::{Adapter, Exit, Step};
use crate::lenient_json::Object;
use crate::update::Update;

/// What the lines of one program mean.
pub(crate) trait OutputFormat: Send {
    fn read(&mut self, line: &Object) -> Vec<Update>;

    /// A line that is no JSON object: a banner, a warning, a line that was cut.
    fn read_plain(&mut self, _line: &str) -> Vec<Update> {
        vec![]
    }

    /// The program has ended without a word about it.
    fn on_exit(&mut self, _exit: &Exit) -> Option<Update> {
        None
    }
}

pub(super) struct OneShot<V> {
    input: Option<String>,
    format: V,
    is_over: bool,
}

impl<V: OutputFormat + 'static> OneShot<V> {
    /// The prompt goes to its standard input, where it is neither visible to others nor limited nor taken for a flag.
    pub(super) fn with_stdin(input: String, format: V) -> Box<dyn Adapter> {
        Box::new(Self { input: Some(input), format, is_over: false })
    }

    /// The prompt stands on its command line.
    pub(super) fn with_arguments(format: V) -> Box<dyn Adapter> {
        Box::new(Self { input: None, format, is_over: false })
    }
}

impl<V: OutputFormat> Adapter for OneShot<V> {
    fn begin(&mut self) -> Vec<Step> {
        // Several programs wait for the end of their input even when they have been told everything.
        self.input.take().map(Step::Write).into_iter().chain([Step::CloseInput]).collect()
    }

    fn on_line(&mut self, line: &str) -> Vec<Step> {
        let updates = match Object::parse(line) {
            Some(object) => self.format.read(&object),
            None => self.format.read_plain(line),
        };
        tell(updates, &mut self.is_over)
    }

    /// All of them take the session as an argument.
    fn is_resumable(&self) -> bool {
        true
    }

    fn on_exit(&mut self, exit: &Exit) -> Option<Update> {
        if self.is_over { None } else { self.format.on_exit(exit) }
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
        steps.push(Step::Report(update));
    }
    steps
}

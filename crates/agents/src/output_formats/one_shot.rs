//! The adapter of programs that are started for one turn, get the prompt at once, and print until they exit.

use crate::adapter::{Adapter, Exit, Step};
use crate::lenient_json::Object;
use crate::update::Update;

/// The output format of one program.
pub(crate) trait OutputFormat: Send {
    fn read(&mut self, line: &Object) -> Vec<Update>;

    /// A line that is no JSON object: a banner, a warning, a truncated line.
    fn read_plain(&mut self, _line: &str) -> Vec<Update> {
        vec![]
    }

    /// The program has exited and no line has ended the turn.
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
    /// The prompt goes to standard input: other users cannot see it there, it may have any length, and it is never read as a
    /// flag.
    pub(super) fn with_stdin(input: String, format: V) -> Box<dyn Adapter> {
        Box::new(Self { input: Some(input), format, is_over: false })
    }

    /// The prompt is on the command line.
    pub(super) fn with_arguments(format: V) -> Box<dyn Adapter> {
        Box::new(Self { input: None, format, is_over: false })
    }
}

impl<V: OutputFormat> Adapter for OneShot<V> {
    fn begin(&mut self) -> Vec<Step> {
        // Several programs wait for the end of their input even if the prompt is complete.
        self.input.take().map(Step::Write).into_iter().chain([Step::CloseInput]).collect()
    }

    fn on_line(&mut self, line: &str) -> Vec<Step> {
        let updates = match Object::parse(line) {
            Some(object) => self.format.read(&object),
            None => self.format.read_plain(line),
        };
        report(updates, &mut self.is_over)
    }

    /// All of these programs take the session as an argument.
    fn is_resumable(&self) -> bool {
        true
    }

    fn on_exit(&mut self, exit: &Exit) -> Option<Update> {
        if self.is_over { None } else { self.format.on_exit(exit) }
    }
}

/// Reports updates up to the end of the turn; later ones are dropped.
pub(super) fn report(updates: Vec<Update>, is_over: &mut bool) -> Vec<Step> {
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

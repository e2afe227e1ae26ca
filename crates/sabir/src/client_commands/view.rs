//! What a command shows of a task that it follows: lines for people or JSON for programs.

use std::io;
use std::path::Path;

use sabir_model::{Message, Part, Status, Task};
use sabir_outbound::remote::Update;

use super::received_task::ReceivedTask;

pub trait View {
    /// Something is new. `received` has it already.
    fn update(&mut self, received: &ReceivedTask, update: &Update) -> io::Result<()>;

    /// The agent answered without a task.
    fn replied(&mut self, message: &Message) -> io::Result<()>;

    /// The turn is over. `last_words` are those of an agent that made nothing and has nothing in its status.
    fn over(&mut self, received: &ReceivedTask, status: &Status, last_words: Option<&[Part]>) -> io::Result<()>;

    /// Whether `task` is to be called at the end.
    fn wants_task(&self) -> bool;

    /// The whole task, at the end.
    fn task(&mut self, task: &Task) -> io::Result<()>;

    /// A file was saved.
    fn saved(&mut self, path: &Path);

    /// For the person who waits, not for programs.
    fn remark(&mut self, text: &str);

    /// For whoever reads stderr.
    fn warn(&mut self, text: &str);

    /// The connection is in trouble; it may be well again soon.
    fn trouble(&mut self, text: &str);

    /// Some time has passed.
    fn tick(&mut self) {}

    /// Somebody else writes on the terminal now.
    fn pause(&mut self) {}
}

//! Lines that a person types. A thread reads them, so that Ctrl-C and the clock are heard meanwhile.

use std::io;
use std::sync::mpsc;
use std::thread;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

pub struct Keyboard {
    wishes: mpsc::Sender<()>,
    lines: UnboundedReceiver<Option<String>>,
    /// A prompt was given up while the thread was reading: its line belongs to the next prompt.
    is_reading: bool,
}

impl Keyboard {
    pub fn new() -> Self {
        let (wishes, wished) = mpsc::channel();
        let (sender, lines) = unbounded_channel();
        // The thread ends with the process: nothing can wake it while it reads.
        thread::spawn(move || read_lines(&wished, &sender));
        Keyboard { wishes, lines, is_reading: false }
    }

    /// The next line. `None`: Ctrl-D. Dropping the future loses nothing.
    pub async fn line(&mut self) -> Option<String> {
        if !self.is_reading {
            self.is_reading = self.wishes.send(()).is_ok();
        }
        let line = self.lines.recv().await.flatten();
        self.is_reading = false;
        line
    }
}

/// Reads a line only when somebody wants one: what is typed later belongs to the shell.
fn read_lines(wished: &mpsc::Receiver<()>, lines: &UnboundedSender<Option<String>>) {
    while wished.recv().is_ok() {
        let mut line = String::new();
        let line = match io::stdin().read_line(&mut line) {
            Ok(1..) => Some(line.trim().to_owned()),
            Ok(0) | Err(_) => None,
        };
        if lines.send(line).is_err() {
            return;
        }
    }
}

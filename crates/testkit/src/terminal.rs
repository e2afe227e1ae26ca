//! A program in a real pseudo-terminal, with a person who types and reads.
//!
//! The program runs in a session of its own whose controlling terminal is the pseudo-terminal (`setsid --ctty`), so Ctrl-C
//! is a signal and Ctrl-D an end, as on a desk.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// As Ctrl-C and Ctrl-D come from a keyboard.
pub const CTRL_C: &str = "\u{3}";
pub const CTRL_D: &str = "\u{4}";

const PATIENCE: Duration = Duration::from_secs(30);
const COLUMNS: u16 = 120;

pub struct Terminal {
    child: Child,
    keyboard: File,
    screen: Arc<Screen>,
}

#[derive(Default)]
struct Screen {
    written: Mutex<String>,
    has_news: Condvar,
}

impl Terminal {
    /// Runs the program with all three standard streams on the terminal, in an environment that is empty but for
    /// `PATH`, `TERM` and these variables.
    pub fn run(program: &str, arguments: &[&str], folder: &Path, variables: &[(&str, &str)]) -> Self {
        let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("there are pseudo-terminals");
        grantpt(&controller).expect("it is ours");
        unlockpt(&controller).expect("it is ours");
        let size = Winsize { ws_row: 40, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&controller, size).expect("it has a size");
        let name = ptsname(&controller, Vec::new()).expect("it has a name");
        let name = name.to_str().expect("its name is text");
        let inside =
            || -> Stdio { OpenOptions::new().read(true).write(true).open(name).expect("the other end opens").into() };
        let child = Command::new("setsid")
            .arg("--ctty")
            .arg(program)
            .args(arguments)
            .current_dir(folder)
            .env_clear()
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            .env("TERM", "xterm")
            .envs(variables.iter().copied())
            .stdin(inside())
            .stdout(inside())
            .stderr(inside())
            .spawn()
            .expect("setsid is there (util-linux)");
        let screen = Arc::new(Screen::default());
        let keyboard = File::from(controller);
        let reading: OwnedFd = keyboard.try_clone().expect("it can be cloned").into();
        let shown = screen.clone();
        thread::spawn(move || shown.read(File::from(reading)));
        Terminal { child, keyboard, screen }
    }

    pub fn type_keys(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("the terminal takes keys");
    }

    /// Waits until this was written, and gives all that was written.
    pub fn wait_for(&self, text: &str) -> String {
        self.wait_until(text, |written| written.contains(text))
    }

    /// Waits until what was written is so.
    pub fn wait_until(&self, what: &str, mut is_so: impl FnMut(&str) -> bool) -> String {
        let deadline = Instant::now() + PATIENCE;
        let mut written = self.screen.written.lock().unwrap();
        while !is_so(&written) {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "waited in vain for {what:?}; it wrote: {written:?}");
            written = self.screen.has_news.wait_timeout(written, left).unwrap().0;
        }
        written.clone()
    }

    /// Waits for the end of the program: its exit code, and what stands on the screen then.
    pub fn finish(mut self) -> (i32, String) {
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            match self.child.try_wait().expect("it can be waited for") {
                Some(status) => break status,
                None => assert!(Instant::now() < deadline, "it has not ended; it wrote: {:?}", self.written()),
            }
            thread::sleep(Duration::from_millis(10));
        };
        // All that was written is there when the last one who could write has gone.
        let written = self.wait_until("the end of the output", |written| written.ends_with(END));
        (status.code().unwrap_or(-1), visible(written.trim_end_matches(END)))
    }

    pub fn written(&self) -> String {
        self.screen.written.lock().unwrap().clone()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Stands behind all that was written when nobody has the terminal open any more.
const END: char = '\u{1f}';

impl Screen {
    fn read(&self, mut from: File) {
        let (mut bytes, mut pending) = ([0; 4096], Vec::new());
        loop {
            // The error is that of a terminal that nobody has open (EIO).
            let count = from.read(&mut bytes).unwrap_or(0);
            pending.extend_from_slice(&bytes[..count]);
            let whole = match std::str::from_utf8(&pending) {
                Ok(text) => text.len(),
                Err(error) => error.valid_up_to(),
            };
            let text = String::from_utf8(pending.drain(..whole).collect()).expect("it was checked");
            let mut written = self.written.lock().unwrap();
            written.push_str(&text);
            if count == 0 {
                written.push(END);
            }
            self.has_news.notify_all();
            if count == 0 {
                return;
            }
        }
    }
}

/// What a person sees of this in the end: carriage returns go back in the line, and `ESC [ K` clears the rest of it.
fn visible(written: &str) -> String {
    let mut lines: Vec<Vec<char>> = vec![Vec::new()];
    let mut column = 0;
    let mut letters = written.chars();
    while let Some(letter) = letters.next() {
        let line = lines.last_mut().expect("there is a line");
        match letter {
            '\r' => column = 0,
            '\n' => {
                lines.push(Vec::new());
                column = 0;
            }
            '\u{1b}' => {
                assert_eq!((letters.next(), letters.next()), (Some('['), Some('K')), "an unknown sequence");
                line.truncate(column);
            }
            '\u{8}' => column = column.saturating_sub(1),
            letter => {
                line.resize(line.len().max(column + 1), ' ');
                line[column] = letter;
                column += 1;
            }
        }
    }
    lines.iter().map(|line| line.iter().collect::<String>() + "\n").collect::<String>().trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_drawn_again_is_seen_once() {
        for (written, expected) in
            [("a\r\nb", "a\nb"), ("1 s\r\u{1b}[K2 s\r\u{1b}[Kdone\r\n", "done"), ("abc\rx", "xbc")]
        {
            assert_eq!(visible(written), expected);
        }
    }

    #[test]
    fn a_program_has_a_keyboard_a_screen_and_ctrl_c() {
        let script =
            "trap 'echo stopped; exit 3' INT; test -t 0 && test -t 2 && read line && echo got $line; read line";
        let mut terminal = Terminal::run("sh", &["-c", script], Path::new("/"), &[]);
        terminal.type_keys("hello\n");
        terminal.wait_for("got hello");
        terminal.type_keys(CTRL_C);
        let (code, screen) = terminal.finish();
        assert_eq!((code, screen.as_str()), (3, "hello\ngot hello\n^Cstopped"));
    }
}

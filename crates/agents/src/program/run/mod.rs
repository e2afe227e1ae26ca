//! One run of a program, from its first step to the end of its turn.
//!
//! The adapter says what to do (`Step`); the run performs it: it writes to the program, reports to the caller of the task,
//! and asks the caller. A run is a state machine. `drive` loops over three functions until the turn ends:
//!
//! ```text
//! perform_steps ──> next_event ──> on_event ──┐
//!       ^                                     │
//!       └─────────────────────────────────────┘
//! ```
//!
//! | stage          | what it means                                            | event: next stage                         |
//! |----------------|----------------------------------------------------------|-------------------------------------------|
//! | `Working`      | The program runs and no question is open.                | a question is due: `Asking`               |
//! |                |                                                          | output ends: `Closed`                     |
//! | `Asking`       | The caller has a question to answer. Steps that come     | reply: `Working`                          |
//! |                | meanwhile wait until it is answered.                     | withdrawn, or the turn is over: `Working` |
//! |                |                                                          | output ends: `Closed`                     |
//! |                |                                                          | no reply for long: `Asleep`               |
//! | `Asleep`       | The question is still open, but the program was killed   | reply, program resumed: `AwaitsRepeat`    |
//! |                | to free its memory.                                      |                                           |
//! | `AwaitsRepeat` | The program was resumed in the middle of its turn. Sabir | same question: answered, `Working`        |
//! |                | has the answer to the question that it must ask again.   | another question: `Asking`                |
//! |                |                                                          | output ends: `Closed`                     |
//! |                |                                                          | silent for too long: the turn fails       |
//! | `Closed`       | The program has closed its output. The steps that wait   | its exit status decides the outcome       |
//! |                | are performed.                                           |                                           |
//!
//! In every stage a cancel ends the run, and so does an update that ends the turn (`Done`, `Failed`, `Interrupted`) when it
//! is performed.

mod drive;
mod end;
mod own_processes;
mod question;
mod session;
mod stage;

pub(super) use drive::{ProgramOrigin, Run, RunState};
pub(super) use end::{KeepWarm, RunEnd};

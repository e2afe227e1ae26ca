//! Calls without HTTP: what clients can ask for, and what they are answered.
//!
//! ```
//! use sabir::Caller;
//! use sabir::calls::{Answer, Call, send};
//!
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! let greeter = sabir::agent("Greets people", |turn| async move { turn.reply("hello").await });
//! let engine = sabir::Server::new().agent("greeter", greeter).engine().await?;
//!
//! let send = Call::Send(Box::new(send("good morning")));
//! let Answer::Task(task) = engine.call(&Caller::anonymous(), send).await? else { panic!("it is a task") };
//! assert_eq!(task.artifacts[0].parts[0].as_text(), Some("hello"));
//! # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
//! ```

pub use sabir_engine::{Answer, Batch, LogEntry, Subscription};
pub use sabir_model::{
    Addressee, Call, Cancel, ContextAlone, Delivery, Direct, Error, Event, Get, IncomingMessage, LastEventId, List,
    OnFinished, OnFinishedCancel, OnFinishedSubscribe, OnUnknown, Page, Send, State, Status, Subscribe, Wanted,
};

use sabir_model::{Part, Role};

/// A message to the default agent, which is answered when its task settles. Change its fields for anything else.
pub fn send(text: impl Into<String>) -> Send {
    let message = IncomingMessage::new(None, Role::User, vec![Part::text(text)]);
    Send::new(message, sabir_wire::NEWEST_BIRTH)
}

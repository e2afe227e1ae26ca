//! Who watches calls: `sabir` wires traces here. A server without an observer does nothing of this.
//!
//! A call is observed from the moment when it is known which surface a request is for, so that refusals are seen too, until
//! its response is complete; for a stream, that is its end.

use std::fmt;
use std::net::IpAddr;

use http::StatusCode;
use http::request::Parts;
use sabir_engine::{Answer, Batch, Subscription};
use sabir_model::{AgentId, Call, ContextId, Error, Event, State, TaskId, TraceContext};
use sabir_wire::Responder;

/// Whoever wants to know of calls. It is called on the way of every call, so it must not wait.
pub trait CallObserver: fmt::Debug + Send + Sync + 'static {
    /// A request for an operation has come.
    fn begin(&self, request: &CallRequest<'_>) -> Box<dyn ObservedCall>;
}

/// What is known of a call before it is read.
pub struct CallRequest<'a> {
    /// Where the request stands in the trace of its caller.
    pub trace: Option<TraceContext>,
    pub verb: &'a str,
    pub path: &'a str,
    /// Who asks, if the connection says so.
    pub peer: Option<IpAddr>,
}

/// What a call asks for.
pub struct CallOperation<'a> {
    /// As 1.0 calls it. `None`: the request could not be read so far.
    pub name: Option<&'static str>,
    /// The version of the protocol; the gateway is none.
    pub version: Option<&'static str>,
    /// How it is carried, as cards name it.
    pub binding: &'static str,
    /// `None`: it is refused, or could not be read.
    pub call: Option<&'a Call>,
}

/// What a call turned out to be about. More may become known later.
#[derive(Default)]
pub struct CallSubject<'a> {
    pub agent: Option<&'a AgentId>,
    pub task: Option<&'a TaskId>,
    pub context: Option<&'a ContextId>,
    pub state: Option<State>,
}

/// A call that is observed. It ends when it is dropped, also where its caller has left before the response.
pub trait ObservedCall: Send + Sync + 'static {
    /// Where the call is in its trace. What the call causes belongs to it.
    fn trace(&self) -> TraceContext;

    fn decoded(&mut self, operation: &CallOperation<'_>);

    fn about(&mut self, subject: &CallSubject<'_>);

    fn failed(&mut self, error: &Error);

    /// The head of the response is made.
    fn responded(&mut self, status: u16);
}

/// The call of one request, if somebody observes it.
#[derive(Default)]
pub(crate) struct Observed(Option<Box<dyn ObservedCall>>);

impl Observed {
    pub(crate) fn begin(
        observer: &dyn CallObserver,
        parts: &Parts,
        trace: Option<TraceContext>,
        peer: Option<IpAddr>,
    ) -> Self {
        let request = CallRequest { trace, verb: parts.method.as_str(), path: parts.uri.path(), peer };
        Self(Some(observer.begin(&request)))
    }

    /// Notes what the request asks for. A message takes the place of the call in the trace along.
    pub(crate) fn decoded(&mut self, responder: &Responder<'_>, call: &mut Result<Call, Error>) {
        let Some(observed) = &mut self.0 else { return };
        observed.decoded(&operation(responder, call.as_ref().ok()));
        if let Ok(Call::Send(send)) = call {
            send.trace = Some(observed.trace());
        }
    }

    pub(crate) fn refused(&mut self, responder: &Responder<'_>, error: &Error) {
        if let Some(observed) = &mut self.0 {
            observed.decoded(&operation(responder, None));
            observed.failed(error);
        }
    }

    pub(crate) fn failed(&mut self, error: &Error) {
        if let Some(observed) = &mut self.0 {
            observed.failed(error);
        }
    }

    pub(crate) fn answered(&mut self, answer: &Answer) {
        let Some(observed) = &mut self.0 else { return };
        let subject = match answer {
            Answer::Task(task) | Answer::Conversation(task, _) | Answer::Answered(task, _) => CallSubject {
                agent: Some(&task.agent),
                task: Some(&task.id),
                context: Some(&task.context),
                state: Some(task.status.state),
            },
            Answer::Message(message) => CallSubject { context: message.context.as_ref(), ..CallSubject::default() },
            Answer::Stream(stream) => of_stream(stream),
            Answer::Page(_) | Answer::PushConfig(_) | Answer::PushConfigs(_) | Answer::Card(_) | Answer::Done => return,
        };
        observed.about(&subject);
    }

    /// Notes the state that a stream shows.
    pub(crate) fn shows(&mut self, batch: &Batch) {
        let Some(observed) = &mut self.0 else { return };
        let state = match batch {
            Batch::Snapshot(task) => Some(task.status.state),
            Batch::Events(entries) => entries.iter().rev().find_map(|entry| match &entry.event {
                Event::Status(change) => Some(change.status.state),
                Event::Created(_) | Event::Artifact(_) => None,
            }),
        };
        if state.is_some() {
            observed.about(&CallSubject { state, ..CallSubject::default() });
        }
    }

    pub(crate) fn responded(&mut self, status: StatusCode) {
        if let Some(observed) = &mut self.0 {
            observed.responded(status.as_u16());
        }
    }
}

fn operation<'a>(responder: &Responder<'_>, call: Option<&'a Call>) -> CallOperation<'a> {
    CallOperation {
        name: responder.operation_name(),
        version: responder.version().map(|version| version.number()),
        binding: responder.binding_name(),
        call,
    }
}

fn of_stream(stream: &Subscription) -> CallSubject<'_> {
    CallSubject { agent: Some(stream.agent()), task: Some(stream.task()), context: Some(stream.context()), state: None }
}

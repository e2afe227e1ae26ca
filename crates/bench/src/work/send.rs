//! A message and its answer; at a gateway, a message and the promise of one.

use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use memchr::memmem;

use crate::check::{self, Wrong};
use crate::connection::{Connection, Reply};
use crate::options::Dialect;
use crate::place::Place;
use crate::probe::{Agent, TEXT};
use crate::request::{Request, digits};
use crate::stage::{Done, Operation};

pub struct Send {
    request: Request,
    place: Place,
    agent: Agent,
    /// Runs that a gateway promised, to be asked for later, and their numbers.
    pub promised: Vec<(String, u64)>,
}

impl Send {
    pub fn new(place: &Place, agent: Agent) -> Self {
        Self { request: place.send(TEXT), place: place.clone(), agent, promised: vec![] }
    }

    /// None where the dialect has no webhooks in a send.
    pub fn with_webhook(place: &Place, agent: Agent, receiver: &SilentReceiver) -> Option<Self> {
        let request = place.send_with_webhook(TEXT, &receiver.url)?;
        Some(Self { request, place: place.clone(), agent, promised: vec![] })
    }
}

/// A receiver of webhooks that takes connections and answers nothing, so that a server pays for what it stores and hardly for
/// what it delivers.
pub struct SilentReceiver {
    pub url: String,
    /// Nobody accepts: the system completes the connections.
    _listener: TcpListener,
}

impl SilentReceiver {
    pub fn new() -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        Ok(Self { url: format!("http://{}/hook", listener.local_addr()?), _listener: listener })
    }
}

impl Operation for Send {
    type Connection = Connection;

    async fn once(&mut self, connection: &mut Connection, number: u64) -> Result<Done, Wrong> {
        let reply = connection.exchange(self.request.numbered(number)).await?;
        if self.place.dialect == Dialect::Gateway {
            let id = check::string(reply.body, b"\"taskId\"").filter(|_| reply.status == 202);
            let id = id.ok_or_else(|| Wrong::reply("no run was promised", reply.status, reply.body))?;
            self.promised.push((String::from_utf8_lossy(id).into_owned(), number));
        } else {
            answered(&reply, &self.place, self.agent, number)?;
        }
        Ok(Done::ONE)
    }
}

/// Checks a task, as a send or a get shows it, that came of our text with this number.
pub fn answered(reply: &Reply<'_>, place: &Place, agent: Agent, number: u64) -> Result<(), Wrong> {
    let wrong = |what: &str| Err(Wrong::reply(what, reply.status, reply.body));
    if reply.status != 200 {
        return wrong("refused");
    }
    match agent {
        Agent::Answers if check::has(reply.body, b"\"error\"") => wrong("an error"),
        Agent::Answers => Ok(()),
        Agent::Demo | Agent::Completes if !place.spelling().is_completed(reply.body) => wrong("not completed"),
        Agent::Demo if !echoes(reply.body, number) => wrong("the echo is another"),
        Agent::Demo | Agent::Completes => Ok(()),
    }
}

fn echoes(body: &[u8], number: u64) -> bool {
    // Without a quote before it, since protobuf has none.
    const ECHO: &[u8] = b"echo: bench ";
    memmem::find(body, ECHO).is_some_and(|at| body[at + ECHO.len()..].starts_with(&digits(number)))
}

/// Waits until the last promised run is done.
pub async fn settled(connection: &mut Connection, place: &Place, id: &str) -> Result<(), Wrong> {
    loop {
        let reply = connection.exchange(&place.task_of(id)).await?;
        if reply.status != 200 || place.spelling().is_completed(reply.body) {
            return Ok(());
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

/// Asks for every run that was promised; all connections take from one list.
#[derive(Clone)]
pub struct Collect {
    pub promised: Arc<Mutex<Vec<(String, u64)>>>,
    pub place: Place,
    pub agent: Agent,
}

impl Operation for Collect {
    type Connection = Connection;

    async fn once(&mut self, connection: &mut Connection, _number: u64) -> Result<Done, Wrong> {
        let next = self.promised.lock().expect("nobody panics with it").pop();
        if let Some((id, number)) = next {
            let reply = connection.exchange(&self.place.task_of(&id)).await?;
            answered(&reply, &self.place, self.agent, number)?;
        }
        Ok(Done::ONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_echo_has_the_number_of_its_message() {
        for (body, number, expected) in [
            (r#"{"text":"echo: bench 000000000012"}"#, 12, true),
            (r#"{"text":"echo: bench 000000000012"}"#, 13, false),
            (r#"{"text":"bench 000000000012"}"#, 12, false),
            (r#"{"text":"echo: bench 0000"#, 0, false),
        ] {
            assert_eq!(echoes(body.as_bytes(), number), expected, "{body}");
        }
    }
}

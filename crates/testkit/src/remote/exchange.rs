//! The requests of one connection, one after the other, and the faults that are about connections and HTTP.

use std::io::{self, BufRead, BufReader};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Instant;

use serde_json::json;

use super::answer::Answer;
use super::connection::{Connection, RawRequest};
use super::faults::{DeathWhen, Ending, Faults, HangUp, HangUpWhen, RedirectTo};
use super::protocol::Operation;
use super::requests::RecordedRequest;
use super::respond::{self, Reply, Wait};
use super::route::{self, Route};
use super::server::Server;
use super::stream;

/// Serves a connection until it ends.
pub(super) fn serve(server: &Arc<Server>, connection: &Connection) {
    let mut reader = connection.reader();
    loop {
        match exchange(server, connection, &mut reader) {
            Ok(Some(Ending::Complete)) if !connection.is_aborted() => {}
            Ok(Some(Ending::Close)) => {
                let _ = connection.close();
                return;
            }
            Ok(Some(Ending::Reset)) => {
                let _ = connection.arm_reset();
                return;
            }
            Ok(_) | Err(_) => return,
        }
    }
}

/// One request and its answer; says how the connection goes on, `None` if it is over.
fn exchange(
    server: &Arc<Server>,
    connection: &Connection,
    reader: &mut BufReader<&TcpStream>,
) -> io::Result<Option<Ending>> {
    // The request has begun to arrive.
    if reader.fill_buf()?.is_empty() {
        return Ok(None);
    }
    if let Some(ending) = hang_up(server, HangUpWhen::BeforeReading, None) {
        return Ok(Some(ending));
    }
    let Some(request) = connection.read_request(reader)? else {
        return Ok(None);
    };
    let route = route::locate(&server.settings, &request);
    let operation = record(server, connection, &route, &request);
    if let Some(answer) = server.change_faults(|faults| http_fault(server, faults, operation, &request)) {
        return write(server, connection, &answer, &request).map(Some);
    }
    if let Some(ending) = hang_up(server, HangUpWhen::BeforeProcessing, operation) {
        return Ok(Some(ending));
    }
    let gone = hang_up(server, HangUpWhen::WhileProcessing, operation);
    let wait = if gone.is_some() { Wait::Never } else { Wait::AsAsked };
    let reply = respond::respond(server, connection, &route, &request, wait);
    if let Some(ending) = gone.or_else(|| hang_up(server, HangUpWhen::AfterProcessing, operation)) {
        return Ok(Some(ending));
    }
    if let Some(death) = server.change_faults(|faults| {
        let dies = |when| matches!(when, DeathWhen::AfterProcessing(on) if on.includes(operation));
        faults.death.take_if(|death| dies(death.when))
    }) {
        server.die(death.tasks, death.back_after);
        return Ok(None);
    }
    let delay = server.faults().delay.filter(|delay| delay.on.includes(operation));
    if delay.is_some_and(|delay| !connection.pause(delay.before_head)) {
        return Ok(None);
    }
    match reply {
        Reply::Answer(answer) => write(server, connection, &answer, &request).map(Some),
        Reply::Stream(reply) => Ok(match stream::write(server, connection, *reply) {
            Some(Ending::Complete) => Some(next(&request)),
            ending => ending,
        }),
    }
}

fn write(server: &Server, connection: &Connection, answer: &Answer, request: &RawRequest) -> io::Result<Ending> {
    connection.write(answer.head().as_bytes())?;
    connection.write_slowly(&answer.body, server.faults().drip)?;
    Ok(next(request))
}

/// How a connection goes on after a complete answer: as the client wants it.
fn next(request: &RawRequest) -> Ending {
    let closes = request.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
    if closes { Ending::Close } else { Ending::Complete }
}

fn record(server: &Server, connection: &Connection, route: &Route, request: &RawRequest) -> Option<Operation> {
    let json = serde_json::from_slice(&request.body).ok();
    let operation = route::operation(route, json.as_ref());
    server.requests.record(RecordedRequest {
        at: Instant::now(),
        connection: connection.number,
        method: request.method.clone(),
        path: request.path.clone(),
        headers: request.headers.clone(),
        body: request.body.clone(),
        json,
        protocol: route.protocol,
        operation,
    });
    operation
}

/// How the connection ends now, if it is to end now. A connection without an answer has nothing to complete.
fn hang_up(server: &Server, when: HangUpWhen, operation: Option<Operation>) -> Option<Ending> {
    let is_now = |fault: &mut HangUp| {
        fault.when == when && (when == HangUpWhen::BeforeReading || fault.on.includes(operation)) && fault.times.take()
    };
    let ending =
        server.change_faults(|faults| faults.hang_up.as_mut().and_then(|fault| is_now(fault).then_some(fault.how)));
    ending.map(|ending| if ending == Ending::Complete { Ending::Close } else { ending })
}

/// The answer that a request gets without being processed.
fn http_fault(
    server: &Server,
    faults: &mut Faults,
    operation: Option<Operation>,
    request: &RawRequest,
) -> Option<Answer> {
    let body = |status: u16| json!({"error": format!("status {status}")}).to_string();
    if let Some(fault) = &mut faults.http_error
        && fault.on.includes(operation)
        && fault.times.take()
    {
        let answer = Answer::new(fault.status, "application/json", body(fault.status));
        return Some(fault.headers.iter().fold(answer, |answer, (name, value)| answer.header(name, value)));
    }
    if let Some(fault) = &mut faults.redirect
        && fault.on.includes(operation)
        && fault.times.take()
    {
        let url = match &fault.to {
            RedirectTo::Itself => format!("http://{}{}", server.address, request.path),
            RedirectTo::Origin(origin) => format!("{}{}", origin.trim_end_matches('/'), request.path),
            RedirectTo::Url(url) => url.clone(),
        };
        return Some(Answer::empty(fault.status).header("Location", &url));
    }
    let bearer = server.settings.bearer.as_ref()?;
    let is_known = request.header("authorization").is_some_and(|shown| shown == format!("Bearer {bearer}"));
    let is_public = operation == Some(Operation::Card);
    let refused = Answer::new(401, "application/json", body(401)).header("WWW-Authenticate", "Bearer");
    (!is_known && !is_public).then_some(refused)
}

//! An answer that is no stream, and the envelope that answers and frames have in common.

use serde_json::{Value, json};

use super::errors::RemoteError;
use super::faults::{At, Faults, Malformation};
use super::planted::PlantedFault;
use super::planted_effects;
use super::protocol::{Operation, RemoteBinding, RemoteProtocol};
use super::server::Server;
use super::tamper;

pub(super) struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub(super) fn new(status: u16, media_type: &str, body: String) -> Self {
        let headers = vec![("Content-Type".to_owned(), media_type.to_owned())];
        Self { status, headers, body: body.into_bytes() }
    }

    pub(super) fn empty(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Vec::new() }
    }

    pub(super) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(super) fn head(&self) -> String {
        let mut head = format!("HTTP/1.1 {} {}\r\n", self.status, reason(self.status));
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("Content-Length: {}\r\n\r\n", self.body.len()));
        head
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        301 | 302 | 303 | 307 | 308 => "Redirect",
        304 => "Not Modified",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        429 => "Too Many Requests",
        503 => "Service Unavailable",
        _ => "Status",
    }
}

/// What is around the content of an answer or a frame.
#[derive(Debug, Clone)]
pub(super) struct Envelope {
    pub protocol: RemoteProtocol,
    /// `null` where the request's is not known. HTTP+JSON has none.
    pub rpc_id: Value,
}

/// Where a text is sent.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place {
    Answer(Operation),
    /// Counted from 0.
    Frame(usize),
}

impl Envelope {
    /// The text of a result, with all that is wrong with it.
    pub(super) fn result(&self, server: &Server, place: Place, mut content: Value) -> String {
        let planted = server.settings.planted;
        planted_effects::content(planted, self.protocol, &mut content);
        if let Place::Answer(operation) = place {
            planted_effects::result(planted, operation, &mut content);
        }
        let faults = server.faults();
        let wrong: Vec<&Malformation> = malformations(&faults, place).collect();
        wrong.iter().for_each(|how| tamper::spoil(&mut content, self.protocol, how));
        let has_envelope = match place {
            Place::Frame(_) if planted == Some(PlantedFault::StreamEnvelope) => !self.is_json_rpc(),
            _ => self.is_json_rpc(),
        };
        let mut whole = content;
        if has_envelope {
            whole = json!({"jsonrpc": "2.0", "id": self.rpc_id, "result": whole});
        }
        planted_effects::envelope(planted, &mut whole);
        wrong.iter().for_each(|how| tamper::spoil_envelope(&mut whole, how));
        let mut text = whole.to_string();
        if wrong.contains(&&Malformation::NotJson) {
            let cut = (0..text.len() * 2 / 3).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            text.truncate(cut);
        }
        text
    }

    /// The text of an error.
    pub(super) fn error(&self, server: &Server, error: &RemoteError) -> String {
        let mut whole = match self.protocol.binding() {
            RemoteBinding::JsonRpc => {
                json!({"jsonrpc": "2.0", "id": self.rpc_id, "error": error.in_json_rpc(self.protocol)})
            }
            RemoteBinding::HttpJson => error.in_http_json(self.protocol),
        };
        planted_effects::error(server.settings.planted, &mut whole);
        planted_effects::envelope(server.settings.planted, &mut whole);
        whole.to_string()
    }

    pub(super) fn is_json_rpc(&self) -> bool {
        self.protocol.binding() == RemoteBinding::JsonRpc
    }
}

fn malformations(faults: &Faults, place: Place) -> impl Iterator<Item = &Malformation> {
    let wrong = faults.malformed.iter().filter(move |malformed| match (malformed.at, place) {
        (At::Everything, _) | (At::Answers, Place::Answer(_)) => true,
        (At::Frame(at), Place::Frame(number)) => at == number,
        (At::FramesFrom(at), Place::Frame(number)) => at <= number,
        (At::Answers, Place::Frame(_)) | (At::Frame(_) | At::FramesFrom(_), Place::Answer(_)) => false,
    });
    wrong.map(|malformed| &malformed.how)
}

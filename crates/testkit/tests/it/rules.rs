//! A small conformance check: one question to a server for each rule that can be broken on purpose.
//!
//! It shows that a planted fault is there, and that nothing else is wrong.

use std::io::Read;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use sabir_testkit::http::{Http, HttpReply};
use sabir_testkit::remote::{Operation, PlantedFault};
use serde_json::{Value, json};

use crate::calls::{Caller, LIMIT, code, content, digest, task_id};

/// How long something is waited for that may never come.
const SHORT: Duration = Duration::from_millis(500);

/// Does the server obey the rule that this fault breaks? `None` if that cannot be seen.
pub fn holds(rule: PlantedFault, caller: &Caller) -> Option<bool> {
    use PlantedFault::*;
    match rule {
        CardWithoutName
        | CardWithoutSkills
        | CardSkillWithoutTags
        | CardWithoutOutputModes
        | CardWithoutProtocolVersion
        | CardDeadInterface
        | CardContentType
        | CardAtOldPath => card_rule(rule, caller),
        PushRefused | PushConfigLost | PushDeleteNotIdempotent | PushNeverDelivered => push_rule(rule, caller),
        ExtendedCardMissing | ExtendedCardOpen => extended_card_rule(rule, caller),
        UnknownMethodCode
        | InvalidJsonCode
        | InvalidRequestAccepted
        | InvalidParamsCode
        | IdNotEchoed
        | IdTypeChanged
        | ResultAndError
        | ResponseWithoutJsonrpc
        | AnswerContentType => envelope_rule(rule, caller),
        TaskNotFoundCode
        | CancelFinishedAccepted
        | CancelFinishedCode
        | VersionAccepted
        | VersionCode
        | ErrorWithoutInfo
        | ErrorDataNotArray
        | ErrorWithoutMessage
        | ErrorWithStatus200 => error_rule(rule, caller),
        FinishedTaskMessageAccepted
        | UnknownTaskMessageAccepted
        | ContextMismatchAccepted
        | ContextReplaced
        | BlockingReturnsEarly
        | ReturnImmediatelyIgnored
        | GetAfterSendNotFound
        | HistoryTooLong
        | HistoryZeroIgnored => message_rule(rule, caller),
        TaskWithoutContext | TimestampWithoutZone | ForeignStateNames | SnakeCaseMember | ArtifactWithoutId
        | ArtifactWithoutParts | MessageWithoutId | SendResultNotWrapped | ResultWithoutKind => {
            content_rule(rule, caller)
        }
        StreamingRefused
        | StreamArtifactFirst
        | StreamWithoutEnd
        | StreamAfterEnd
        | StreamStaysOpen
        | AppendOnFirstChunk
        | StreamContentType
        | StreamEnvelope
        | StreamForeignTask
        | StreamWithoutFinal
        | SubscribeWithoutSnapshot
        | SubscribeFinishedAccepted => stream_rule(rule, caller),
        ListPageSizeIgnored
        | ListPageTokenIgnored
        | ListWithoutNextToken
        | ListWithoutTotalSize
        | ListOldestFirst
        | ListWithArtifacts
        | ListContextIgnored
        | ListBadPageSizeAccepted => list_rule(rule, caller),
    }
}

const CARD: &str = "/.well-known/agent-card.json";

fn get(caller: &Caller, path: &str) -> HttpReply {
    Http::connect(caller.address).unwrap().exchange("GET", path, &[], b"").unwrap()
}

fn card(caller: &Caller) -> HttpReply {
    let reply = get(caller, CARD);
    if reply.status == 200 { reply } else { get(caller, "/.well-known/agent.json") }
}

fn card_rule(rule: PlantedFault, caller: &Caller) -> Option<bool> {
    let reply = card(caller);
    let card = reply.json();
    Some(match rule {
        PlantedFault::CardWithoutName => card["name"].is_string(),
        PlantedFault::CardWithoutSkills => card["skills"].is_array(),
        PlantedFault::CardSkillWithoutTags => card["skills"].get(0)?["tags"].is_array(),
        PlantedFault::CardWithoutOutputModes => card["defaultOutputModes"].is_array(),
        PlantedFault::CardWithoutProtocolVersion if caller.protocol.is_v1() => {
            card["supportedInterfaces"][0]["protocolVersion"].is_string()
        }
        PlantedFault::CardWithoutProtocolVersion => card["protocolVersion"].is_string(),
        PlantedFault::CardDeadInterface => {
            let list = if caller.protocol.is_v1() { "supportedInterfaces" } else { "additionalInterfaces" };
            card[list].as_array()?.iter().all(|interface| {
                let authority = interface["url"].as_str().unwrap().trim_start_matches("http://").trim_end_matches('/');
                let address: SocketAddr = authority.parse().unwrap();
                TcpStream::connect(address).is_ok()
            })
        }
        PlantedFault::CardContentType => reply.header("content-type") == Some("application/json"),
        _ => get(caller, CARD).status == 200,
    })
}

/// The params that name a push config.
fn config(caller: &Caller, task: &str) -> Value {
    match caller.protocol.is_v1() {
        true => json!({"taskId": task, "id": "c-1"}),
        false => json!({"id": task, "pushNotificationConfigId": "c-1"}),
    }
}

fn push_rule(rule: PlantedFault, caller: &Caller) -> Option<bool> {
    if rule == PlantedFault::PushNeverDelivered {
        return Some(is_delivered(caller));
    }
    let task = task_id(&caller.result(Operation::Send, &caller.message("ask why?")))?;
    let url = "http://127.0.0.1:9/hook";
    let params = match caller.protocol.is_v1() {
        true => json!({"taskId": task, "id": "c-1", "url": url}),
        false => json!({"taskId": task, "pushNotificationConfig": {"id": "c-1", "url": url}}),
    };
    let set = caller.call(Operation::SetPush, &params);
    if rule == PlantedFault::PushRefused {
        return Some(!is_error(&set));
    }
    if is_error(&set) {
        return None;
    }
    if rule == PlantedFault::PushConfigLost {
        return Some(!is_error(&caller.call(Operation::GetPush, &config(caller, &task))));
    }
    let delete = || is_error(&caller.call(Operation::DeletePush, &config(caller, &task)));
    (!delete()).then(|| !delete())
}

/// Sends with a webhook, and waits for it to be called.
fn is_delivered(caller: &Caller) -> bool {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let mut params = caller.message("hi");
    params["configuration"] = match caller.protocol.is_v1() {
        true => json!({"taskPushNotificationConfig": {"id": "c-1", "url": url}}),
        false => json!({"pushNotificationConfig": {"id": "c-1", "url": url}}),
    };
    caller.call(Operation::Send, &params);
    let end = Instant::now() + 4 * SHORT;
    while Instant::now() < end {
        if let Ok((mut socket, _)) = listener.accept() {
            socket.set_nonblocking(false).unwrap();
            return socket.read(&mut [0; 64]).unwrap() > 0;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    false
}

fn extended_card_rule(rule: PlantedFault, caller: &Caller) -> Option<bool> {
    let card = card(caller).json();
    let promise = if caller.protocol.is_v1() {
        &card["capabilities"]["extendedAgentCard"]
    } else {
        &card["supportsAuthenticatedExtendedCard"]
    };
    if *promise != true {
        return Some(true);
    }
    let reply = caller.call(Operation::ExtendedCard, &json!({}));
    Some(match rule {
        PlantedFault::ExtendedCardMissing => ![-32601, 404].contains(&code(&reply)),
        _ => is_error(&reply),
    })
}

fn post(caller: &Caller, path: &str, version: &str, body: &str) -> HttpReply {
    let headers = [("A2A-Version", version)];
    Http::connect(caller.address).unwrap().exchange("POST", path, &headers, body.as_bytes()).unwrap()
}

fn envelope_rule(rule: PlantedFault, caller: &Caller) -> Option<bool> {
    let is_rpc = caller.is_json_rpc();
    let send_path = if is_rpc { "/" } else { "/message:send" };
    let get = |id: Value| {
        let method = caller.protocol.method(Operation::Get).unwrap();
        let params = json!({"id": "nothing"});
        let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        post(caller, "/", "1.0", &body.to_string()).json()
    };
    Some(match rule {
        PlantedFault::UnknownMethodCode => {
            let body = json!({"jsonrpc": "2.0", "id": 7, "method": "NoSuchMethod", "params": {}});
            code(&post(caller, "/", "1.0", &body.to_string())) == -32601
        }
        PlantedFault::InvalidJsonCode => {
            code(&post(caller, send_path, "1.0", "{\"message\":")) == if is_rpc { -32700 } else { 400 }
        }
        PlantedFault::InvalidRequestAccepted => {
            let method = caller.protocol.method(Operation::Get).unwrap();
            let body = json!({"id": 7, "method": method, "params": {"id": "nothing"}});
            code(&post(caller, "/", "1.0", &body.to_string())) == -32600
        }
        PlantedFault::InvalidParamsCode => {
            let mut params = caller.message("hi");
            params["message"]["parts"] = json!([]);
            code(&caller.call(Operation::Send, &params)) == if is_rpc { -32602 } else { 400 }
        }
        PlantedFault::IdNotEchoed => get(json!("seven"))["id"] == "seven",
        PlantedFault::IdTypeChanged => get(json!(7))["id"] != "7",
        PlantedFault::ResultAndError => {
            let json = caller.call(Operation::Send, &caller.message("hi")).json();
            json.get("error").is_none()
        }
        PlantedFault::ResponseWithoutJsonrpc => get(json!(7))["jsonrpc"] == "2.0",
        _ => caller.call(Operation::Send, &caller.message("hi")).header("content-type")? == "application/a2a+json",
    })
}

fn is_error(reply: &HttpReply) -> bool {
    let json: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
    json.get("result").is_none() && (json.get("error").is_some() || reply.status >= 400)
}

/// The reason of an error, or its code in JSON-RPC.
fn reason(caller: &Caller, reply: &HttpReply) -> Option<String> {
    let json = reply.json();
    match caller.is_json_rpc() {
        true => Some(json["error"]["code"].to_string()),
        false => json["error"]["details"][0]["reason"].as_str().map(str::to_owned),
    }
}

fn error_rule(rule: PlantedFault, caller: &Caller) -> Option<bool> {
    let expected = |code: i64, name: &str| if caller.is_json_rpc() { code.to_string() } else { name.to_owned() };
    match rule {
        PlantedFault::TaskNotFoundCode => {
            let reply = caller.call(Operation::Get, &json!({"id": "nothing"}));
            return Some([-32001, 404].contains(&code(&reply)));
        }
        PlantedFault::VersionAccepted | PlantedFault::VersionCode => {
            let (_, path, body) = caller.request(Operation::Send, &caller.message("hi"));
            let reply = post(caller, &path, "9.9", &body);
            return match rule {
                PlantedFault::VersionAccepted => Some(is_error(&reply)),
                _ if !is_error(&reply) => None,
                _ => Some(reason(caller, &reply)? == expected(-32009, "VERSION_NOT_SUPPORTED")),
            };
        }
        _ => {}
    }
    let done = task_id(&caller.result(Operation::Send, &caller.message("hi")))?;
    if rule == PlantedFault::CancelFinishedAccepted {
        // A send that returned early may leave work.
        caller.call(Operation::Cancel, &json!({ "id": done }));
    }
    let reply = caller.call(Operation::Cancel, &json!({ "id": done }));
    if rule == PlantedFault::CancelFinishedAccepted {
        return Some(is_error(&reply));
    }
    if !is_error(&reply) {
        return None;
    }
    let json = reply.json();
    Some(match rule {
        PlantedFault::CancelFinishedCode => reason(caller, &reply)? == expected(-32002, "TASK_NOT_CANCELABLE"),
        PlantedFault::ErrorWithoutInfo => reply.text().contains("google.rpc.ErrorInfo"),
        PlantedFault::ErrorDataNotArray => json["error"].get("data")?.is_array(),
        PlantedFault::ErrorWithoutMessage => json["error"]["message"].is_string(),
        _ => reply.status >= 400,
    })
}

fn message_rule(rule: PlantedFault, caller: &Caller) -> Option<bool> {
    let send = |params: &Value| caller.call(Operation::Send, params);
    match rule {
        PlantedFault::UnknownTaskMessageAccepted => {
            return Some(is_error(&send(&caller.message_to("hi", Some("nothing")))));
        }
        PlantedFault::ContextReplaced => {
            let mut params = caller.message("hi");
            params["message"]["contextId"] = json!("mine");
            let sent = content(&send(&params));
            let task = sent.get("task").unwrap_or(&sent);
            return task["contextId"].as_str().map(|context| context == "mine");
        }
        PlantedFault::BlockingReturnsEarly => {
            let sent = digest(&content(&send(&caller.message("slow 0.01 hi"))));
            return Some(sent.contains("completed"));
        }
        PlantedFault::ReturnImmediatelyIgnored => {
            let sent = digest(&content(&send(&caller.message_without_waiting("slow 0.3 hi"))));
            return Some(!sent.contains("completed"));
        }
        _ => {}
    }
    let asked = task_id(&content(&send(&caller.message("ask why?"))))?;
    if rule == PlantedFault::ContextMismatchAccepted {
        let mut params = caller.message_to("because", Some(&asked));
        params["message"]["contextId"] = json!("another");
        return Some(is_error(&send(&params)));
    }
    content(&send(&caller.message_to("because", Some(&asked))));
    if rule == PlantedFault::FinishedTaskMessageAccepted {
        // A send that returned early may leave work, but a task that is canceled is finished.
        caller.call(Operation::Cancel, &json!({ "id": asked }));
        return Some(is_error(&send(&caller.message_to("again", Some(&asked)))));
    }
    let length = if rule == PlantedFault::HistoryTooLong { 1 } else { 0 };
    let read = caller.call(Operation::Get, &json!({"id": asked, "historyLength": length}));
    if rule == PlantedFault::GetAfterSendNotFound {
        return Some(!is_error(&read));
    }
    let read = content(&read);
    read.get("status")?;
    Some(read["history"].as_array().map_or(0, Vec::len) <= length)
}

fn content_rule(rule: PlantedFault, caller: &Caller) -> Option<bool> {
    if rule == PlantedFault::MessageWithoutId {
        let sent = caller.result(Operation::Send, &caller.message("message hello"));
        let message = sent.get("message").unwrap_or(&sent);
        return Some(message["messageId"].is_string());
    }
    let sent = caller.result(Operation::Send, &caller.message("hi"));
    let task = sent.get("task").unwrap_or(&sent);
    let artifact = || task["artifacts"].get(0);
    Some(match rule {
        PlantedFault::TaskWithoutContext => task["contextId"].is_string(),
        PlantedFault::TimestampWithoutZone => task["status"]["timestamp"].as_str()?.ends_with('Z'),
        PlantedFault::ForeignStateNames => {
            task["status"]["state"].as_str()?.starts_with("TASK_STATE_") == caller.protocol.is_v1()
        }
        PlantedFault::SnakeCaseMember => artifact()?.get("artifact_id").is_none(),
        PlantedFault::ArtifactWithoutId => {
            let artifact = artifact()?;
            artifact.get("artifactId").or_else(|| artifact.get("artifact_id")).is_some()
        }
        PlantedFault::ArtifactWithoutParts => !artifact()?["parts"].as_array()?.is_empty(),
        PlantedFault::SendResultNotWrapped => sent.get("task").is_some(),
        _ => sent["kind"] == "task",
    })
}

/// How far a stream is read.
#[derive(PartialEq)]
enum Until {
    LastStatus,
    Closed,
}

/// The frames of a stream of `hi`, and whether it was seen to be closed.
fn frames(caller: &Caller, until: Until) -> Option<(Vec<Value>, bool)> {
    let mut events = caller.try_stream(Operation::Stream, &caller.message("hi")).ok()?.ok()?;
    events.give_up_after(LIMIT);
    let mut frames = Vec::new();
    while let Ok(frame) = events.next_frame() {
        let Some(frame) = frame else {
            return Some((frames, true));
        };
        let payload = frame.payload();
        if payload.get("error").is_some() {
            return None;
        }
        frames.push(frame.json());
        if digest(&payload).starts_with("status completed") {
            if until == Until::LastStatus {
                break;
            }
            events.give_up_after(SHORT);
        }
    }
    Some((frames, false))
}

fn stream_rule(rule: PlantedFault, caller: &Caller) -> Option<bool> {
    match rule {
        PlantedFault::StreamContentType => return stream_content_type(caller),
        PlantedFault::SubscribeWithoutSnapshot | PlantedFault::SubscribeFinishedAccepted => {
            return subscribe_rule(rule, caller);
        }
        PlantedFault::StreamingRefused => return Some(frames(caller, Until::LastStatus).is_some()),
        _ => {}
    }
    let is_about_the_end = matches!(rule, PlantedFault::StreamAfterEnd | PlantedFault::StreamStaysOpen);
    let until = if is_about_the_end { Until::Closed } else { Until::LastStatus };
    let (frames, is_closed) = frames(caller, until)?;
    if rule == PlantedFault::StreamEnvelope {
        return Some(frames[0].get("result").is_some() == caller.is_json_rpc());
    }
    let payloads: Vec<Value> = frames.iter().map(|frame| frame.get("result").unwrap_or(frame).clone()).collect();
    let digests: Vec<String> = payloads.iter().map(digest).collect();
    let end = digests.iter().position(|frame| frame.starts_with("status completed"));
    let update = |payload: &Value| payload.as_object().and_then(|members| members.values().next()).cloned();
    let inner = |payload: &Value| if caller.protocol.is_v1() { update(payload) } else { Some(payload.clone()) };
    Some(match rule {
        PlantedFault::StreamArtifactFirst => digests[0].starts_with("task"),
        PlantedFault::StreamWithoutEnd => end.is_some(),
        PlantedFault::StreamAfterEnd => end? + 1 == frames.len(),
        PlantedFault::StreamStaysOpen => is_closed,
        PlantedFault::AppendOnFirstChunk => {
            let first = digests.iter().position(|frame| frame.starts_with("artifact"))?;
            inner(&payloads[first])?["append"] != true
        }
        PlantedFault::StreamForeignTask => {
            let task = digests.iter().position(|frame| frame.starts_with("task"))?;
            let id = inner(&payloads[task])?["id"].clone();
            payloads.iter().filter_map(inner).all(|event| event.get("taskId").is_none_or(|named| *named == id))
        }
        _ => payloads[end?]["final"] == true,
    })
}

fn stream_content_type(caller: &Caller) -> Option<bool> {
    let (method, path, body) = caller.request(Operation::Stream, &caller.message("hi"));
    let mut http = Http::connect(caller.address).ok()?;
    http.send(&method, &path, &caller.headers(), body.as_bytes()).ok()?;
    let (_, headers) = http.receive_head().ok()?;
    let is_stream = headers.iter().any(|(name, _)| name == "transfer-encoding");
    is_stream.then(|| headers.iter().any(|(name, value)| name == "content-type" && value == "text/event-stream"))
}

fn subscribe_rule(rule: PlantedFault, caller: &Caller) -> Option<bool> {
    let is_finished = rule == PlantedFault::SubscribeFinishedAccepted;
    let params = if is_finished { caller.message("hi") } else { caller.message_without_waiting("slow 1 hi") };
    let task = task_id(&caller.result(Operation::Send, &params))?;
    if is_finished {
        // A send that returned early may leave work.
        caller.call(Operation::Cancel, &json!({ "id": task }));
    }
    let opened = caller.try_stream(Operation::Subscribe, &json!({ "id": task })).ok()?;
    if is_finished {
        return Some(opened.is_err());
    }
    let mut events = opened.ok()?;
    events.give_up_after(LIMIT);
    Some(digest(&events.next_frame().ok()??.payload()).starts_with("task"))
}

fn list_rule(rule: PlantedFault, caller: &Caller) -> Option<bool> {
    let list = |params: Value| caller.result(Operation::List, &params);
    let sent: Vec<Value> = (0..2).map(|_| caller.result(Operation::Send, &caller.message("hi"))).collect();
    let count = |page: &Value| page["tasks"].as_array().map(Vec::len);
    match rule {
        PlantedFault::ListBadPageSizeAccepted => {
            return Some(is_error(&caller.call(Operation::List, &json!({"pageSize": 101}))));
        }
        PlantedFault::ListPageSizeIgnored => return Some(count(&list(json!({"pageSize": 1})))? <= 1),
        PlantedFault::ListPageTokenIgnored => {
            let first = list(json!({"pageSize": 1}));
            let token = first["nextPageToken"].as_str().filter(|token| !token.is_empty())?;
            let second = list(json!({"pageSize": 1, "pageToken": token}));
            return Some(first["tasks"].get(0)?["id"] != second["tasks"].get(0)?["id"]);
        }
        PlantedFault::ListContextIgnored => {
            let task = sent[0].get("task").unwrap_or(&sent[0]);
            return Some(count(&list(json!({"contextId": task["contextId"].as_str()?})))? == 1);
        }
        _ => {}
    }
    let page = list(json!({"pageSize": 5}));
    let tasks = page["tasks"].as_array()?;
    let time = |task: &Value| task["status"]["timestamp"].as_str().map(str::to_owned);
    Some(match rule {
        PlantedFault::ListWithoutNextToken => page.get("nextPageToken").is_some(),
        PlantedFault::ListWithoutTotalSize => page.get("totalSize").is_some(),
        PlantedFault::ListOldestFirst => tasks.windows(2).all(|pair| time(&pair[0]) >= time(&pair[1])),
        _ => tasks.iter().all(|task| task.get("artifacts").is_none()),
    })
}

//! Finds the server's door from its card, and learns what can be checked of its answers.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::time::timeout;

use crate::check::{self, Wrong};
use crate::connection::Connection;
use crate::http2::{Http2, Http2Request};
use crate::options::{Dialect, Options};
use crate::place::Place;
use crate::request::NUMBER;
use crate::run::Error;
use crate::stage::Connect;

/// What `sabir bench` sends as plain text.
pub const TEXT: &str = "bench ############";
const PATIENCE: Duration = Duration::from_secs(10);
const CARDS: [&str; 2] = ["/.well-known/agent-card.json", "/.well-known/agent.json"];

/// How far the answers of this server can be checked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Agent {
    /// It echoes, so it is taken to know the words of the demo agent.
    Demo,
    /// It completes a task, whatever is in it.
    Completes,
    /// It answers something else.
    Answers,
}

pub struct Found {
    pub place: Place,
    pub agent: Agent,
}

pub async fn find(options: &Options) -> Result<Found, Error> {
    let base = base(&options.url, options.dialect).await?;
    let found = async {
        let mut connection = Connection::open(base.address)
            .await
            .map_err(|error| Error::Unreachable(base.authority.clone(), error.to_string()))?;
        let card = card(&mut connection, &base).await?;
        let Door { path, tenant } = match options.dialect {
            Dialect::Gateway => gateway(&mut connection, &base).await?,
            dialect => door(&card, dialect, &base.path).ok_or_else(|| Error::NoDoor(dialect.name()))?,
        };
        let run = format!("{:x}", run_number());
        let place = Place { path, tenant, run, ..base.clone() };
        let agent = agent(&mut connection, &place).await?;
        Ok(Found { place, agent })
    };
    timeout(PATIENCE, found).await.map_err(|_| Error::Silent(base.authority.clone(), PATIENCE.as_secs()))?
}

/// The address of the URL; its path is where the card lies.
async fn base(url: &str, dialect: Dialect) -> Result<Place, Error> {
    if url.starts_with("https://") {
        return Err(Error::Https);
    }
    let rest = url.strip_prefix("http://").unwrap_or(url);
    let (authority, path) = match rest.find('/') {
        Some(slash) => (&rest[..slash], rest[slash..].trim_end_matches('/')),
        None => (rest, ""),
    };
    let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let host_and_port = if has_port { authority.to_owned() } else { format!("{authority}:80") };
    let is_nobody =
        authority.is_empty() || authority.contains([' ', '@', '?', '#']) || url.contains("://") && rest == url;
    let unknown = || Error::BadUrl(url.to_owned());
    if is_nobody {
        return Err(unknown());
    }
    let addresses: Vec<SocketAddr> = tokio::net::lookup_host(&host_and_port).await.map_err(|_| unknown())?.collect();
    // `localhost` is often both, and servers often listen on the older one alone.
    let address = addresses.iter().find(|address| address.is_ipv4()).or(addresses.first()).ok_or_else(unknown)?;
    Ok(Place {
        address: *address,
        authority: authority.to_owned(),
        path: path.to_owned(),
        tenant: String::new(),
        // A server may show each version a card of its own.
        dialect,
        run: String::new(),
    })
}

async fn card(connection: &mut Connection, base: &Place) -> Result<Value, Error> {
    let mut said = String::new();
    for path in CARDS {
        let reply = connection.exchange(&base.get(path)).await.map_err(|wrong| not_a2a(base, wrong.to_string()))?;
        let card: Option<Value> = serde_json::from_slice(reply.body).ok();
        match card {
            Some(card) if reply.status == 200 && card.is_object() => return Ok(card),
            _ if said.is_empty() => {
                said = format!("{path} is no card but {} {}", reply.status, check::shortened(reply.body))
            }
            _ => {}
        }
    }
    Err(not_a2a(base, said))
}

fn not_a2a(base: &Place, why: String) -> Error {
    Error::NotA2a(format!("{}{}", base.authority, base.path), why)
}

/// Where calls go.
struct Door {
    path: String,
    /// The agent that gRPC names in each call.
    tenant: String,
}

/// The interface that the card lists for the dialect. A card without interfaces has its `url`.
fn door(card: &Value, dialect: Dialect, base: &str) -> Option<Door> {
    let (binding, version) = match dialect {
        Dialect::V1 | Dialect::V1Http2 => ("JSONRPC", "1."),
        Dialect::V03 => ("JSONRPC", "0.3"),
        Dialect::V01 => ("JSONRPC", "0.1"),
        Dialect::Rest => ("HTTP+JSON", "1."),
        Dialect::Grpc => ("GRPC", "1."),
        Dialect::Gateway => return None,
    };
    let interfaces = card["supportedInterfaces"].as_array().into_iter().flatten();
    let is_it = |interface: &&Value| {
        interface["protocolBinding"] == binding
            && interface["protocolVersion"].as_str().is_some_and(|listed| listed.starts_with(version))
    };
    let interface = interfaces.clone().find(is_it);
    if dialect == Dialect::Grpc {
        // Its URL is often an authority alone, and its paths are those of the service.
        let tenant = interface?["tenant"].as_str().unwrap_or_default().to_owned();
        return Some(Door { path: String::new(), tenant });
    }
    let listed = interface.and_then(|interface| interface["url"].as_str());
    let older = card["url"].as_str().filter(|_| matches!(dialect, Dialect::V03 | Dialect::V01));
    let only = card["url"].as_str().filter(|_| interfaces.count() == 0);
    let url = listed.or(older).or(only)?;
    let path = match url.split_once("://") {
        Some((_, rest)) => rest.find('/').map_or("", |slash| &rest[slash..]),
        None if url.is_empty() => base,
        None => url,
    };
    Some(Door { path: path.trim_end_matches('/').to_owned(), tenant: String::new() })
}

/// The path of the gateway's first agent.
async fn gateway(connection: &mut Connection, base: &Place) -> Result<Door, Error> {
    let no_door = || Error::NoDoor(Dialect::Gateway.name());
    let reply = connection.exchange(&base.get("/v1/a2a/agents")).await.map_err(|_| no_door())?;
    let agents: Value = serde_json::from_slice(reply.body).map_err(|_| no_door())?;
    let send = agents[0]["messageSendUrl"].as_str().ok_or_else(no_door)?;
    let path = send.strip_suffix("/message:send").ok_or_else(no_door)?;
    Ok(Door { path: path.to_owned(), tenant: String::new() })
}

/// Sends one message and looks at the answer.
async fn agent(connection: &mut Connection, place: &Place) -> Result<Agent, Error> {
    let refused = |why: String| Error::Refused(place.dialect.name(), why);
    let (status, body) = first_reply(connection, place).await.map_err(|wrong| refused(wrong.to_string()))?;
    if place.dialect == Dialect::Grpc {
        return Ok(judge(place, &body));
    }
    if let Some(complaint) = place.complaint(&body) {
        return Err(refused(format!("{status} {complaint}")));
    }
    let is_json = serde_json::from_slice::<Value>(&body).is_ok_and(|body| body.is_object());
    if !(status == 200 || status == 202) || !is_json {
        return Err(refused(format!("{status} {}", check::shortened(&body))));
    }
    if place.dialect != Dialect::Gateway {
        return Ok(judge(place, &body));
    }
    let id = place.task_id(&body).ok_or_else(|| refused(format!("no taskId in {}", check::shortened(&body))))?;
    for _ in 0..100 {
        let wrong = |wrong: Wrong| refused(wrong.to_string());
        let reply = connection.exchange(&place.task_of(&id)).await.map_err(wrong)?;
        if place.spelling().is_completed(reply.body) {
            return Ok(judge(place, reply.body));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(Agent::Answers)
}

/// The reply to a message, over the version of HTTP that is measured.
async fn first_reply(connection: &mut Connection, place: &Place) -> Result<(u16, Vec<u8>), Wrong> {
    let mut request = place.send(TEXT);
    if place.dialect.is_over_http2() {
        let mut connection = Http2::connect(place).await?;
        let reply = connection.send(&mut Http2Request::new(place, request), 0).await?;
        return Ok((reply.status, reply.whole().await?));
    }
    let reply = connection.exchange(request.numbered(0)).await?;
    Ok((reply.status, reply.body.to_vec()))
}

fn judge(place: &Place, body: &[u8]) -> Agent {
    let echo = format!("echo: {}", TEXT.replace(NUMBER, "000000000000"));
    if !place.spelling().is_completed(body) {
        Agent::Answers
    } else if check::has(body, echo.as_bytes()) {
        Agent::Demo
    } else {
        Agent::Completes
    }
}

/// Another one for each run.
fn run_number() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    (now.as_micros() as u64) << 8 | u64::from(std::process::id() & 0xff)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_door_on_a_card() {
        let new = json!({"supportedInterfaces": [
            {"url": "http://x:1/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
            {"url": "http://x:1/old/", "protocolBinding": "JSONRPC", "protocolVersion": "0.3"},
            {"url": "http://x:1/", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"},
            {"url": "x:1", "protocolBinding": "GRPC", "protocolVersion": "1.0", "tenant": "demo"}]});
        let old = json!({"url": "http://x:1/a2a"});
        for (card, dialect, expected) in [
            (&new, Dialect::V1, Some("/rpc")),
            (&new, Dialect::V1Http2, Some("/rpc")),
            (&new, Dialect::V03, Some("/old")),
            (&new, Dialect::Rest, Some("")),
            (&new, Dialect::V01, None),
            (&new, Dialect::Grpc, Some(" of demo")),
            (&old, Dialect::Grpc, None),
            (&old, Dialect::V03, Some("/a2a")),
            (&old, Dialect::V01, Some("/a2a")),
            (&old, Dialect::V1, Some("/a2a")),
            (&json!({}), Dialect::V1, None),
        ] {
            let found = door(card, dialect, "").map(|Door { path, tenant }| match tenant.as_str() {
                "" => path,
                tenant => format!("{path} of {tenant}"),
            });
            assert_eq!(found.as_deref(), expected, "{dialect:?} on {card}");
        }
    }
}

//! `/admin/v1`: what operators look at and do, in JSON.
//!
//! Errors are RFC 9457 problems whatever `A2A-Version` says: these calls are no part of the protocol. Who may make them is
//! in `access`, and is decided before the path is looked at.

mod access;
mod agents;
mod audit;
mod backup;
mod config;
mod deliveries;
mod facts;
mod metrics;
mod nodes;
mod system;
mod task_query;
mod task_views;
mod tasks;

use std::time::Duration;

use http::request::Parts;
use http::{HeaderValue, Response, StatusCode, header};
use sabir_model::{Caller, scope};
use sabir_wire::{RequestHead, locate};
use serde::Serialize;

pub use access::AdminAccess;
pub use facts::{ServerFacts, SettingFact, StoreAbout};

use crate::app::App;
use crate::auth::Peer;
use crate::body::Body;
use crate::cors::RequestOrigin;
use crate::host::Authority;

const BASE: &str = "/admin/v1";
/// How many rows a page of a list has, and how many at most.
const DEFAULT_LIMIT: usize = 100;
const MAX_LIMIT: usize = 1000;

/// Where an admin call comes from, and where it was sent to.
pub(crate) struct Source<'a> {
    pub(crate) origin: &'a RequestOrigin,
    pub(crate) host: Option<Authority<'a>>,
    pub(crate) peer: &'a Peer,
}

/// What of the path follows the base; `None`: it is no admin call.
pub(crate) fn path_below_base(path: &str) -> Option<&str> {
    path.strip_prefix(BASE).filter(|below| below.is_empty() || below.starts_with('/'))
}

/// What an admin call is answered.
struct AdminReply {
    status: StatusCode,
    body: Vec<u8>,
}

impl AdminReply {
    fn new(status: StatusCode, body: &impl Serialize) -> Self {
        Self { status, body: serde_json::to_vec(body).expect("texts and numbers can be written as JSON") }
    }

    fn into_response(self) -> Response<Body> {
        with_status(self.status, "application/json", self.body)
    }
}

/// Why an admin call is refused.
enum AdminRefusal {
    Problem { status: StatusCode, detail: String },
    VerbNotAllowed { allow: &'static str },
    Engine(sabir_model::Error),
}

impl AdminRefusal {
    fn invalid(detail: impl Into<String>) -> Self {
        Self::Problem { status: StatusCode::BAD_REQUEST, detail: detail.into() }
    }

    fn not_found(detail: impl Into<String>) -> Self {
        Self::Problem { status: StatusCode::NOT_FOUND, detail: detail.into() }
    }
}

impl From<sabir_model::Error> for AdminRefusal {
    fn from(error: sabir_model::Error) -> Self {
        match error {
            sabir_model::Error::PushNotSupported => Self::not_found("this server offers no webhooks"),
            sabir_model::Error::Invalid(violations) => {
                let words: Vec<String> = violations
                    .iter()
                    .map(|violation| format!("{} {}", violation.field, violation.description))
                    .collect();
                Self::invalid(words.join("; "))
            }
            other => Self::Engine(other),
        }
    }
}

impl App {
    pub(crate) async fn admin(&self, parts: &Parts, below: &str, source: Source<'_>) -> Response<Body> {
        let answered = match self.admit_admin(parts, &source).await {
            Ok(caller) if is_backup(parts, below) => self.backup(&caller).await,
            Ok(caller) => self.admin_call(&caller, parts, below).await.map(AdminReply::into_response),
            Err(refusal) => Err(refusal),
        };
        let mut response = match answered {
            Ok(response) => response,
            Err(refusal) => self.admin_refusal(parts, refusal),
        };
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }

    fn admin_refusal(&self, parts: &Parts, refusal: AdminRefusal) -> Response<Body> {
        match refusal {
            AdminRefusal::Problem { status, detail } => problem(status, &detail),
            AdminRefusal::VerbNotAllowed { allow } => {
                let detail = format!("this path does not take {}", parts.method);
                let mut response = problem(StatusCode::METHOD_NOT_ALLOWED, &detail);
                response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allow));
                response
            }
            AdminRefusal::Engine(error) => {
                let head = RequestHead { path: parts.uri.path(), ..RequestHead::default() };
                self.refuse(parts, &locate(&head, &self.visible_agents(None)).responder(&head), &error)
            }
        }
    }

    /// Where callers have credentials, one with the scope `admin` is needed; elsewhere the call must come from this machine.
    async fn admit_admin(&self, parts: &Parts, source: &Source<'_>) -> Result<Caller, AdminRefusal> {
        self.admit_with_scope(parts, source, scope::ADMIN).await
    }

    /// The same with another scope, instead of which `admin` will do too.
    async fn admit_with_scope(&self, parts: &Parts, source: &Source<'_>, scope: &str) -> Result<Caller, AdminRefusal> {
        let app = &*self.inner;
        let forbidden = |detail: String| Err(AdminRefusal::Problem { status: StatusCode::FORBIDDEN, detail });
        if !app.auth.is_required() {
            let caller = Caller::anonymous().from_peer(source.peer.address);
            return app.settings.admin.refuses(&parts.headers, source).map_or(Ok(caller), forbidden);
        }
        if let RequestOrigin::Refused = source.origin {
            return forbidden("pages of this origin may not call; allow it with server.cors_origins".into());
        }
        match self.admitted_caller(parts, source.peer).await? {
            caller if caller.is_admin() || caller.has_scope(scope) => Ok(caller),
            caller => {
                let request = format!("{} {}", parts.method, parts.uri.path());
                app.engine.record_refused_admin_call(&caller, &request);
                forbidden(format!("the credential lacks the scope {scope}"))
            }
        }
    }

    async fn admin_call(&self, caller: &Caller, parts: &Parts, below: &str) -> Result<AdminReply, AdminRefusal> {
        let (engine, facts) = (&self.inner.engine, &self.inner.settings.facts);
        let query = parts.uri.query();
        let verb = match parts.method.as_str() {
            "HEAD" => "GET",
            verb => verb,
        };
        let below = below.strip_suffix('/').unwrap_or(below);
        let segments: Vec<&str> = below.split('/').skip(1).collect();
        match (segments.as_slice(), verb) {
            (["agents"], "GET") => Ok(agents::list(engine, facts)),
            (["audit"], "GET") => audit::list(engine, query).await,
            (["config"], "GET") => Ok(config::show(facts)),
            (["deliveries"], "GET") => deliveries::list(engine, query).await,
            (["deliveries", "retry"], "POST") => deliveries::retry_all(engine, caller, query).await,
            (["deliveries", "retry"], _) => Err(AdminRefusal::VerbNotAllowed { allow: "POST" }),
            (["deliveries", id], "GET") => deliveries::show(engine, id).await,
            (["deliveries", id], "DELETE") => deliveries::discard(engine, caller, id).await,
            (["deliveries", id, "retry"], "POST") => deliveries::retry(engine, caller, id).await,
            (["nodes"], "GET") => nodes::list(engine).await,
            (["system"], "GET") => system::show(self).await,
            (["tasks"], "GET") => task_views::list(engine, caller, query).await,
            (["tasks", "assign"], "POST") => tasks::assign(engine, caller, query).await,
            (["tasks", "cancel"], "POST") => task_views::cancel(engine, caller, query).await,
            (["tasks", "assign" | "cancel"], _) => Err(AdminRefusal::VerbNotAllowed { allow: "POST" }),
            (["tasks", id], "GET") => task_views::show(engine, caller, id, query).await,
            (["agents" | "audit" | "config" | "deliveries" | "nodes" | "system" | "tasks"] | ["tasks", _], _) => {
                Err(AdminRefusal::VerbNotAllowed { allow: "GET, HEAD" })
            }
            (["store", "backup"], _) => Err(AdminRefusal::VerbNotAllowed { allow: "GET" }),
            (["deliveries", _], _) => Err(AdminRefusal::VerbNotAllowed { allow: "GET, HEAD, DELETE" }),
            (["deliveries", _, "retry"], _) => Err(AdminRefusal::VerbNotAllowed { allow: "POST" }),
            _ => Err(AdminRefusal::not_found(format!("there is nothing at {}", sabir_wire::excerpt(parts.uri.path())))),
        }
    }
}

/// To the millisecond.
fn seconds(duration: Duration) -> f64 {
    duration.as_millis() as f64 / 1000.0
}

/// The one call whose answer is a stream. Not for HEAD: it would have to read the store for nothing.
fn is_backup(parts: &Parts, below: &str) -> bool {
    parts.method == http::Method::GET && below.strip_suffix('/').unwrap_or(below) == "/store/backup"
}

/// No sign, no zero in front, and not larger than numbers in a database are.
fn whole_number(text: &str) -> Option<u64> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    text.parse().ok().filter(|number| is_plain && i64::try_from(*number).is_ok())
}

fn after_number(value: &str) -> Result<u64, AdminRefusal> {
    whole_number(value).ok_or_else(|| AdminRefusal::invalid("after must be a whole number"))
}

fn limit_number(value: &str) -> Result<usize, AdminRefusal> {
    let limit = whole_number(value).and_then(|limit| usize::try_from(limit).ok());
    limit
        .filter(|limit| (1..=MAX_LIMIT).contains(limit))
        .ok_or_else(|| AdminRefusal::invalid(format!("limit must be between 1 and {MAX_LIMIT}")))
}

#[derive(Serialize)]
struct Problem<'a> {
    r#type: &'static str,
    title: &'static str,
    status: u16,
    detail: &'a str,
}

fn problem(status: StatusCode, detail: &str) -> Response<Body> {
    let title = status.canonical_reason().unwrap_or_default();
    let reply = AdminReply::new(status, &Problem { r#type: "about:blank", title, status: status.as_u16(), detail });
    with_status(status, "application/problem+json", reply.body)
}

fn with_status(status: StatusCode, content_type: &'static str, body: Vec<u8>) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

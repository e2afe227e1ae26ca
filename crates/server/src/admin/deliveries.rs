//! Deliveries of webhooks: those that are still tried, and those that were given up.

use std::fmt;

use http::StatusCode;
use sabir_engine::{Delivery, DeliveryKind, Engine};
use sabir_model::Caller;
use sabir_wire::{excerpt, query_parameters, query_value};
use serde::Serialize;

use super::{AdminRefusal, AdminReply, DEFAULT_LIMIT, after_number, limit_number, whole_number};

/// `p12` or `g7`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct DeliveryId {
    kind: DeliveryKind,
    number: u64,
}

impl DeliveryId {
    fn parse(text: &str) -> Result<Self, AdminRefusal> {
        let known = [("p", DeliveryKind::Pending), ("g", DeliveryKind::GivenUp)];
        let parsed = known.into_iter().find_map(|(letter, kind)| {
            let number = whole_number(text.strip_prefix(letter)?)?;
            Some(Self { kind, number })
        });
        parsed.ok_or_else(|| no_such(text))
    }
}

impl fmt::Display for DeliveryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = match self.kind {
            DeliveryKind::Pending => 'p',
            DeliveryKind::GivenUp => 'g',
        };
        write!(f, "{letter}{}", self.number)
    }
}

fn no_such(id: &str) -> AdminRefusal {
    AdminRefusal::not_found(format!(
        "there is no delivery {}; it may have been delivered meanwhile. Ids are such as p12 (pending) and g7 (given up)",
        excerpt(id)
    ))
}

/// A delivery as it is shown.
#[derive(Serialize)]
struct DeliveryView<'a> {
    id: String,
    state: &'static str,
    task: &'a str,
    /// Callers of 0.1 choose ids, so several tasks may have the same.
    #[serde(rename = "taskNumber")]
    task_number: u64,
    agent: &'a str,
    config: &'a str,
    url: &'a str,
    /// Of a pending one: the number of the last event that is handled already.
    #[serde(skip_serializing_if = "Option::is_none")]
    sent: Option<u64>,
    /// Of a given-up one: the number of the event.
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<u64>,
    attempts: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

impl<'a> From<&'a Delivery> for DeliveryView<'a> {
    fn from(delivery: &'a Delivery) -> Self {
        let is_pending = delivery.kind == DeliveryKind::Pending;
        let event = delivery.event;
        Self {
            id: DeliveryId { kind: delivery.kind, number: delivery.number }.to_string(),
            state: if is_pending { "pending" } else { "given-up" },
            task: delivery.task.as_str(),
            task_number: delivery.task_no.0,
            agent: delivery.agent.as_str(),
            config: delivery.webhook.as_str(),
            url: &delivery.url,
            sent: is_pending.then_some(event),
            event: (!is_pending).then_some(event),
            attempts: delivery.attempts,
            reason: delivery.reason.as_deref(),
            since: delivery.since.map(|time| time.to_string()),
            next: delivery.next.map(|time| time.to_string()),
        }
    }
}

#[derive(Serialize)]
struct Page<'a> {
    deliveries: Vec<DeliveryView<'a>>,
    /// What `after` is for the next page; left out where nothing follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<u64>,
}

#[derive(Debug, PartialEq, Eq)]
struct ListQuery {
    kind: DeliveryKind,
    after: u64,
    limit: usize,
}

impl ListQuery {
    fn parse(query: Option<&str>) -> Result<Self, AdminRefusal> {
        let (mut kind, mut after, mut limit) = (None, None, None);
        for parameter in query.unwrap_or_default().split('&').filter(|parameter| !parameter.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let is_first = match name {
                "state" => kind.replace(state(value)?).is_none(),
                "after" => after.replace(after_number(value)?).is_none(),
                "limit" => limit.replace(limit_number(value)?).is_none(),
                _ => {
                    let name = excerpt(name);
                    return Err(AdminRefusal::invalid(format!(
                        "there is no parameter {name}; known: state, after, limit"
                    )));
                }
            };
            if !is_first {
                return Err(AdminRefusal::invalid(format!("{name} is given twice")));
            }
        }
        Ok(Self {
            kind: kind.unwrap_or(DeliveryKind::Pending),
            after: after.unwrap_or(0),
            limit: limit.unwrap_or(DEFAULT_LIMIT),
        })
    }
}

fn state(value: &str) -> Result<DeliveryKind, AdminRefusal> {
    match value {
        "pending" => Ok(DeliveryKind::Pending),
        "given-up" => Ok(DeliveryKind::GivenUp),
        _ => Err(AdminRefusal::invalid("state must be pending or given-up")),
    }
}

pub(super) async fn list(engine: &Engine, query: Option<&str>) -> Result<AdminReply, AdminRefusal> {
    let ListQuery { kind, after, limit } = ListQuery::parse(query)?;
    let found = engine.deliveries(kind, after, limit).await?;
    let last = found.last().filter(|_| found.len() == limit).map(|delivery| delivery.number);
    let page = Page { deliveries: found.iter().map(DeliveryView::from).collect(), after: last };
    Ok(AdminReply::new(StatusCode::OK, &page))
}

pub(super) async fn show(engine: &Engine, id: &str) -> Result<AdminReply, AdminRefusal> {
    let DeliveryId { kind, number } = DeliveryId::parse(id)?;
    let before = number.checked_sub(1).ok_or_else(|| no_such(id))?;
    let found = engine.deliveries(kind, before, 1).await?;
    let delivery = found.iter().find(|delivery| delivery.number == number).ok_or_else(|| no_such(id))?;
    Ok(AdminReply::new(StatusCode::OK, &DeliveryView::from(delivery)))
}

/// What was done to a delivery.
#[derive(Serialize)]
struct Changed<'a> {
    id: &'a str,
}

pub(super) async fn retry(engine: &Engine, caller: &Caller, id: &str) -> Result<AdminReply, AdminRefusal> {
    let DeliveryId { kind, number } = DeliveryId::parse(id)?;
    if !engine.retry_delivery(caller, kind, number).await? {
        return Err(no_such(id));
    }
    tracing::info!(delivery = id, "an operator asked to try a delivery again");
    Ok(AdminReply::new(StatusCode::ACCEPTED, &Changed { id }))
}

/// How many deliveries are tried again.
#[derive(Serialize)]
struct Retried {
    retried: u64,
}

pub(super) async fn retry_all(
    engine: &Engine,
    caller: &Caller,
    query: Option<&str>,
) -> Result<AdminReply, AdminRefusal> {
    let (kind, url) = retry_query(query)?;
    let retried = engine.retry_deliveries(caller, kind, url.as_deref()).await?;
    tracing::info!(retried, "an operator asked to try deliveries again");
    Ok(AdminReply::new(StatusCode::ACCEPTED, &Retried { retried }))
}

/// Those that were given up, unless it says otherwise, and of all receivers, unless it names the URL of one.
fn retry_query(query: Option<&str>) -> Result<(DeliveryKind, Option<String>), AdminRefusal> {
    let (mut kind, mut url) = (None, None);
    for (name, value) in query_parameters(query) {
        let value = query_value(value)
            .ok_or_else(|| AdminRefusal::invalid(format!("the value of {} is not encoded well", excerpt(name))))?;
        let is_first = match name {
            "state" => kind.replace(state(&value)?).is_none(),
            "url" if value.is_empty() => return Err(AdminRefusal::invalid("url must not be empty")),
            "url" => url.replace(value.into_owned()).is_none(),
            _ => {
                let name = excerpt(name);
                return Err(AdminRefusal::invalid(format!("there is no parameter {name}; known: state, url")));
            }
        };
        if !is_first {
            return Err(AdminRefusal::invalid(format!("{name} is given twice")));
        }
    }
    Ok((kind.unwrap_or(DeliveryKind::GivenUp), url))
}

pub(super) async fn discard(engine: &Engine, caller: &Caller, id: &str) -> Result<AdminReply, AdminRefusal> {
    let DeliveryId { kind, number } = DeliveryId::parse(id)?;
    if !engine.drop_delivery(caller, kind, number).await? {
        return Err(no_such(id));
    }
    tracing::info!(delivery = id, "an operator dropped a delivery");
    Ok(AdminReply::new(StatusCode::OK, &Changed { id }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detail(refusal: AdminRefusal) -> String {
        match refusal {
            AdminRefusal::Problem { detail, .. } => detail,
            AdminRefusal::VerbNotAllowed { .. } | AdminRefusal::Engine(_) => "another refusal".to_owned(),
        }
    }

    #[test]
    fn ids_of_deliveries() {
        let huge = format!("p{}", "9".repeat(5000));
        for (text, expected) in [
            ("p12", true),
            ("g7", true),
            ("p0", true),
            ("p9223372036854775807", true),
            ("p9223372036854775808", false),
            (&huge, false),
            ("p", false),
            ("12", false),
            ("p012", false),
            ("p+1", false),
            ("p-1", false),
            ("P1", false),
            ("x1", false),
            ("p1%20", false),
            ("", false),
            ("é", false),
        ] {
            match DeliveryId::parse(text) {
                Ok(id) => assert!(expected && id.to_string() == text, "{text}: {id}"),
                Err(refusal) => {
                    let told = detail(refusal);
                    assert!(
                        !expected && told.starts_with("there is no delivery ") && told.len() < 500,
                        "{text}: {told}"
                    );
                }
            }
        }
    }

    #[test]
    fn which_deliveries_are_tried_again() {
        for (query, expected) in [
            (None, "GivenUp None"),
            (Some("state=pending&url=https%3A%2F%2Fa%2F"), "Pending Some(\"https://a/\")"),
            (Some("state=dead"), "state must be pending or given-up"),
            (Some("url="), "url must not be empty"),
            (Some("url=a&url=b"), "url is given twice"),
            (Some("url=%zz"), "the value of url is not encoded well"),
            (Some("task=t"), "there is no parameter task; known: state, url"),
        ] {
            let told = match retry_query(query) {
                Ok((kind, url)) => format!("{kind:?} {url:?}"),
                Err(refusal) => detail(refusal),
            };
            assert_eq!(told, expected, "{query:?}");
        }
    }

    #[test]
    fn what_a_list_is_asked_for() {
        for (query, expected) in [
            (None, "Pending after 0, 100"),
            (Some(""), "Pending after 0, 100"),
            (Some("state=given-up&after=17&limit=1000"), "GivenUp after 17, 1000"),
            (Some("state=pending&"), "Pending after 0, 100"),
            (Some("state=all"), "state must be pending or given-up"),
            (Some("state"), "state must be pending or given-up"),
            (Some("after=-1"), "after must be a whole number"),
            (Some("after=99999999999999999999"), "after must be a whole number"),
            (Some("limit=0"), "limit must be between 1 and 1000"),
            (Some("limit=1001"), "limit must be between 1 and 1000"),
            (Some("limit=x"), "limit must be between 1 and 1000"),
            (Some("limit=1&limit=1"), "limit is given twice"),
            (Some("stat=given-up"), "there is no parameter stat; known: state, after, limit"),
        ] {
            let told = match ListQuery::parse(query) {
                Ok(ListQuery { kind, after, limit }) => format!("{kind:?} after {after}, {limit}"),
                Err(refusal) => detail(refusal),
            };
            assert_eq!(told, expected, "{query:?}");
        }
    }
}

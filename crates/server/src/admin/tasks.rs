//! Giving tasks to another owner: those from before there were credentials, or of somebody who has left.

use http::StatusCode;
use sabir_engine::Engine;
use sabir_model::{Caller, Owner};
use sabir_wire::{excerpt, query_parameters, query_value};
use serde::Serialize;

use super::{AdminRefusal, AdminReply};

#[derive(Serialize)]
struct AssignedView {
    moved: u64,
    /// At work, or the other owner has a task of the same id.
    left: u64,
}

pub(super) async fn assign(engine: &Engine, caller: &Caller, query: Option<&str>) -> Result<AdminReply, AdminRefusal> {
    let (from, to) = parse(query)?;
    let assigned = engine.assign(caller, &from, &to).await?;
    Ok(AdminReply::new(StatusCode::OK, &AssignedView { moved: assigned.moved, left: assigned.left }))
}

/// `from` and `to` are subjects such as `token:alice`, or `anonymous`: whoever called before there were credentials.
fn parse(query: Option<&str>) -> Result<(Owner, Owner), AdminRefusal> {
    let (mut from, mut to, mut from_tenant, mut to_tenant) = (None, None, None, None);
    for (name, value) in query_parameters(query) {
        let slot = match name {
            "from" => &mut from,
            "to" => &mut to,
            "from_tenant" => &mut from_tenant,
            "to_tenant" => &mut to_tenant,
            _ => {
                let name = excerpt(name);
                let words = format!("there is no parameter {name}; known: from, from_tenant, to, to_tenant");
                return Err(AdminRefusal::invalid(words));
            }
        };
        let value = query_value(value)
            .ok_or_else(|| AdminRefusal::invalid(format!("the value of {name} is not encoded well")))?;
        if slot.replace(value.into_owned()).is_some() {
            return Err(AdminRefusal::invalid(format!("{name} is given twice")));
        }
    }
    Ok((owner("from", from, from_tenant)?, owner("to", to, to_tenant)?))
}

fn owner(name: &str, subject: Option<String>, tenant: Option<String>) -> Result<Owner, AdminRefusal> {
    let is_text = |text: &str| text.len() <= 1024 && !text.chars().any(char::is_control);
    let invalid = |words: &str| Err(AdminRefusal::invalid(format!("{name} {words}")));
    let tenant = tenant.unwrap_or_default();
    match subject.as_deref() {
        None | Some("") => invalid("is missing; expected a subject such as token:alice, or anonymous"),
        Some("anonymous") if tenant.is_empty() => Ok(Owner::anonymous()),
        // Every subject is qualified by who vouches for it; another text would be nobody's, and the tasks out of reach.
        Some(subject) if !subject.contains([':', '#']) => {
            invalid("is not a subject; subjects are such as token:alice, key:bob, cert:URI, ISSUER#SUB, or anonymous")
        }
        Some(subject) if is_text(subject) && is_text(&tenant) => Ok(Owner::new(&tenant, subject)),
        Some(_) => invalid("has control characters or is too long"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_tasks_go_to_whom() {
        for (query, expected) in [
            ("from=anonymous&to=token%3Aalice", "anonymous -> token:alice"),
            ("from=token:a&from_tenant=x&to=https://idp/%23b&to_tenant=y", "token:a@x -> https://idp/#b@y"),
            ("to=token:a", "from is missing; expected a subject such as token:alice, or anonymous"),
            ("from=token:a", "to is missing; expected a subject such as token:alice, or anonymous"),
            (
                "from=anonymous&to=alice",
                "to is not a subject; subjects are such as token:alice, key:bob, cert:URI, ISSUER#SUB, or anonymous",
            ),
            ("from=token:a%1f&to=token:b", "from has control characters or is too long"),
            ("from=token:a&from=token:b&to=token:c", "from is given twice"),
            ("who=x", "there is no parameter who; known: from, from_tenant, to, to_tenant"),
            ("from=%zz", "the value of from is not encoded well"),
        ] {
            let shown = match parse(Some(query)) {
                Ok((from, to)) => format!("{from} -> {to}"),
                Err(AdminRefusal::Problem { detail, .. }) => detail,
                Err(_) => panic!("{query}"),
            };
            assert_eq!(shown, expected, "{query}");
        }
    }
}

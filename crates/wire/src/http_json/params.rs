//! The one JSON object that a dialect reads, made of path, query and body.
//!
//! What the path names is written last, and the same member of the body is left out: the path wins.

use std::fmt;

use sabir_model::{Error, JsonMembers};

use super::endpoints::EndpointGroup;
use super::query::Field;
use super::{HttpJsonRoute, check_object};
use crate::{Operation, json};

pub(super) fn with_query(route: &HttpJsonRoute<'_>, fields: &[Field]) -> String {
    let mut params = Params::new();
    for field in fields {
        params.add(field.name, &field.json);
    }
    params.finish(route)
}

/// A body may be missing, empty or `null` where the path says all.
pub(super) fn with_body(route: &HttpJsonRoute<'_>, text: &str) -> Result<String, Error> {
    let mut params = Params::new();
    let is_blank = matches!(text.trim(), "" | "null");
    if is_blank && route.operation == Operation::Cancel {
        return Ok(params.finish(route));
    }
    check_object(text)?;
    let JsonMembers(members) = json::read(text)?;
    let has = |names: &[&str]| members.iter().any(|(name, _)| names.contains(&&**name));
    match (route.group, route.operation) {
        // Clients send either the request with the config in it, or the config itself.
        (EndpointGroup::V0_3, Operation::PushSet) if !has(&["config"]) => params.add("config", text.as_bytes()),
        (EndpointGroup::TaskAlias, Operation::PushSet)
            if !has(&["pushNotificationConfig", "push_notification_config"]) =>
        {
            params.add("pushNotificationConfig", text.as_bytes());
        }
        (group, operation) => {
            for (name, value) in &members {
                if !members_of_path(group, operation).contains(&&**name) {
                    params.add(name, value.get().as_bytes());
                }
            }
        }
    }
    Ok(params.finish(route))
}

/// The members of a body that repeat what the path says.
fn members_of_path(group: EndpointGroup, operation: Operation) -> &'static [&'static str] {
    match (group, operation) {
        (EndpointGroup::V1 | EndpointGroup::Unversioned, Operation::PushSet) => &["taskId", "task_id"],
        (EndpointGroup::V0_3, Operation::PushSet) => &["parent"],
        _ => &["id", "taskId", "task_id", "name"],
    }
}

struct Params(Vec<u8>);

impl Params {
    fn new() -> Self {
        Self(Vec::with_capacity(128))
    }

    fn add(&mut self, name: &str, value: &[u8]) {
        self.member(name);
        self.0.extend_from_slice(value);
    }

    fn name(&mut self, name: &str, text: fmt::Arguments<'_>) {
        self.member(name);
        json::write(&text, &mut self.0);
    }

    fn member(&mut self, name: &str) {
        self.0.push(if self.0.is_empty() { b'{' } else { b',' });
        json::write(&name, &mut self.0);
        self.0.push(b':');
    }

    fn finish(mut self, route: &HttpJsonRoute<'_>) -> String {
        let task = route.task.as_deref().unwrap_or_default();
        let config = route.config.as_deref().unwrap_or_default();
        match (route.group, route.operation) {
            (_, Operation::Send | Operation::Stream | Operation::List | Operation::ExtendedCard) => {}
            (EndpointGroup::V0_3, Operation::Get | Operation::Cancel | Operation::Subscribe) => {
                self.name("name", format_args!("tasks/{task}"));
            }
            (EndpointGroup::V0_3, Operation::PushSet | Operation::PushList) => {
                self.name("parent", format_args!("tasks/{task}"));
            }
            (EndpointGroup::V0_3, Operation::PushGet | Operation::PushDelete) => {
                self.name("name", format_args!("tasks/{task}/pushNotificationConfigs/{config}"));
            }
            (_, Operation::Get | Operation::Cancel | Operation::Subscribe) => {
                self.name("id", format_args!("{task}"));
            }
            (EndpointGroup::TaskAlias, Operation::PushList) => self.name("id", format_args!("{task}")),
            (EndpointGroup::TaskAlias, Operation::PushGet | Operation::PushDelete) => {
                self.name("id", format_args!("{task}"));
                if route.config.is_some() {
                    self.name("pushNotificationConfigId", format_args!("{config}"));
                }
            }
            (_, Operation::PushSet | Operation::PushList) => self.name("taskId", format_args!("{task}")),
            (_, Operation::PushGet | Operation::PushDelete) => {
                self.name("taskId", format_args!("{task}"));
                self.name("id", format_args!("{config}"));
            }
        }
        if self.0.is_empty() {
            self.0.push(b'{');
        }
        self.0.push(b'}');
        String::from_utf8(self.0).expect("JSON made of text is text")
    }
}

//! Paths of HTTP+JSON: which resource they name, in which version.

use std::borrow::Cow;

use super::endpoints::EndpointGroup;
use crate::version::VersionHeader;
use crate::{Operation, percent};

/// What a path names.
pub(crate) struct MatchedPath<'a> {
    /// The first segment, where 1.0 has a tenant.
    pub tenant: Option<Cow<'a, str>>,
    pub group: EndpointGroup,
    pub resource: Resource<'a>,
}

pub(crate) struct Resource<'a> {
    pub methods: Methods,
    pub task: Option<Cow<'a, str>>,
    pub config: Option<Cow<'a, str>>,
}

type Methods = &'static [(&'static str, Operation)];

const SEND: Methods = &[("POST", Operation::Send)];
const STREAM: Methods = &[("POST", Operation::Stream)];
const TASK: Methods = &[("GET", Operation::Get)];
const TASKS: Methods = &[("GET", Operation::List)];
const CANCEL: Methods = &[("POST", Operation::Cancel)];
// The text of the specification says POST, its proto GET; clients do either.
const SUBSCRIBE: Methods = &[("GET", Operation::Subscribe), ("POST", Operation::Subscribe)];
const CONFIGS: Methods = &[("GET", Operation::PushList), ("POST", Operation::PushSet)];
// A delete without the id of a config is about all of them, as over JSON-RPC in 0.3.
const ALIAS_CONFIGS: Methods =
    &[("GET", Operation::PushList), ("POST", Operation::PushSet), ("DELETE", Operation::PushDelete)];
const CONFIG: Methods = &[("GET", Operation::PushGet), ("DELETE", Operation::PushDelete)];
const CARD: Methods = &[("GET", Operation::ExtendedCard)];

impl Resource<'_> {
    /// As the `Allow` header has it.
    pub fn allow(&self) -> &'static str {
        match self.methods {
            [("GET", Operation::Subscribe), ("POST", _)] => "GET, POST",
            [("GET", _), ("POST", _)] => "GET, HEAD, POST",
            [("GET", _), ("POST", _), ("DELETE", _)] => "GET, HEAD, POST, DELETE",
            [("GET", _), ("DELETE", _)] => "GET, HEAD, DELETE",
            [("POST", _)] => "POST",
            _ => "GET, HEAD",
        }
    }
}

/// `path` has no slash at its end.
pub(crate) fn match_path<'a>(path: &'a str, version: &VersionHeader<'_>) -> Option<MatchedPath<'a>> {
    // The longest: /a2a/rest/{tenant}/tasks/{id}/pushNotificationConfigs/{id}.
    let mut segments = [""; 7];
    let mut length = 0;
    for segment in path.strip_prefix('/')?.split('/') {
        *segments.get_mut(length)? = segment;
        length += 1;
    }
    match &segments[..length] {
        // The path is relative to the URL of the card, which is below `/a2a`; SDKs also use it at the root.
        ["agent", "authenticatedExtendedCard"] | ["a2a", "agent", "authenticatedExtendedCard"] => {
            let resource = Resource { methods: CARD, task: None, config: None };
            Some(MatchedPath { tenant: None, group: EndpointGroup::V0_2Card, resource })
        }
        ["a2a", "rest", rest @ ..] => below_base(rest, version),
        ["a2a", rest @ ..] => {
            Some(MatchedPath { tenant: None, group: EndpointGroup::TaskAlias, resource: alias(rest)? })
        }
        rest => below_base(rest, version),
    }
}

fn below_base<'a>(segments: &[&'a str], version: &VersionHeader<'_>) -> Option<MatchedPath<'a>> {
    if let (["v1", rest @ ..], true) = (segments, !version.is_1_0()) {
        return Some(MatchedPath { tenant: None, group: EndpointGroup::V0_3, resource: v0_3(rest)? });
    }
    // Another version is refused with an error of 1.0.
    let group = if version.is_missing() { EndpointGroup::Unversioned } else { EndpointGroup::V1 };
    if let Some(resource) = v1(segments) {
        return Some(MatchedPath { tenant: None, group, resource });
    }
    let (tenant, rest) = segments.split_first()?;
    let tenant = percent::segment(tenant).filter(|tenant| !tenant.is_empty())?;
    Some(MatchedPath { tenant: Some(tenant), group, resource: v1(rest)? })
}

fn v1<'a>(segments: &[&'a str]) -> Option<Resource<'a>> {
    match *segments {
        ["tasks"] => Some(Resource { methods: TASKS, task: None, config: None }),
        ["extendedAgentCard"] => Some(Resource { methods: CARD, task: None, config: None }),
        _ => both(segments),
    }
}

fn v0_3<'a>(segments: &[&'a str]) -> Option<Resource<'a>> {
    match *segments {
        ["card"] => Some(Resource { methods: CARD, task: None, config: None }),
        _ => both(segments),
    }
}

/// What 1.0 and 0.3 have in common.
fn both<'a>(segments: &[&'a str]) -> Option<Resource<'a>> {
    match *segments {
        [message] => match &*percent::segment(message)? {
            "message:send" => Some(Resource { methods: SEND, task: None, config: None }),
            "message:stream" => Some(Resource { methods: STREAM, task: None, config: None }),
            _ => None,
        },
        ["tasks", last] => {
            let (task, methods) = action(last);
            Some(Resource { methods, task: Some(percent::segment(task)?), config: None })
        }
        ["tasks", task, "pushNotificationConfigs"] => {
            Some(Resource { methods: CONFIGS, task: Some(percent::segment(task)?), config: None })
        }
        ["tasks", task, "pushNotificationConfigs", config] => Some(Resource {
            methods: CONFIG,
            task: Some(percent::segment(task)?),
            config: Some(percent::segment(config)?),
        }),
        _ => None,
    }
}

fn alias<'a>(segments: &[&'a str]) -> Option<Resource<'a>> {
    match *segments {
        ["tasks", task] => Some(Resource { methods: TASK, task: Some(percent::segment(task)?), config: None }),
        ["tasks", task, "pushNotificationConfig" | "pushNotificationConfigs"] => {
            Some(Resource { methods: ALIAS_CONFIGS, task: Some(percent::segment(task)?), config: None })
        }
        // Without an id, a delete would be about all configs.
        ["tasks", task, "pushNotificationConfig" | "pushNotificationConfigs", config] if !config.is_empty() => {
            Some(Resource {
                methods: CONFIG,
                task: Some(percent::segment(task)?),
                config: Some(percent::segment(config)?),
            })
        }
        _ => None,
    }
}

/// Ids may hold colons, so an action is what follows the last one that is not percent-encoded: a client that encodes
/// its ids can name a task whose id ends like an action.
fn action(last: &str) -> (&str, Methods) {
    match last.rsplit_once(':') {
        Some((task, "cancel")) => (task, CANCEL),
        Some((task, "subscribe")) => (task, SUBSCRIBE),
        _ => (last, TASK),
    }
}

//! The configuration in force, as `sabir config` prints it.

use http::StatusCode;
use serde::Serialize;

use super::{AdminReply, ServerFacts, SettingFact};

#[derive(Serialize)]
struct ConfigView<'a> {
    settings: &'a [SettingFact],
}

pub(super) fn show(facts: &ServerFacts) -> AdminReply {
    AdminReply::new(StatusCode::OK, &ConfigView { settings: &facts.settings })
}

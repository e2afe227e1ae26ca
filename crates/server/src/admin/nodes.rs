//! The servers that share the store, as operators see them.

use http::StatusCode;
use sabir_engine::{Engine, Member, MemberState};
use serde::Serialize;

use super::{AdminRefusal, AdminReply, seconds};

#[derive(Serialize)]
struct NodesView<'a> {
    /// Whether this server shares its store with others.
    shared: bool,
    nodes: Vec<NodeView<'a>>,
}

#[derive(Serialize)]
struct NodeView<'a> {
    name: &'a str,
    /// Whether this is the node that answers.
    this: bool,
    state: &'static str,
    version: &'a str,
    /// In seconds, as all times here, by the clock of the database.
    up: f64,
    last_beat: f64,
    grace: f64,
    /// `at once`, or `polling`: it looks for what other nodes do, since nothing tells it.
    notifications: &'static str,
    working: u64,
    parked: u64,
    queued: u64,
}

pub(super) async fn list(engine: &Engine) -> Result<AdminReply, AdminRefusal> {
    let members = engine.nodes().await?;
    let view = NodesView { shared: !members.is_empty(), nodes: members.iter().map(NodeView::of).collect() };
    Ok(AdminReply::new(StatusCode::OK, &view))
}

impl<'a> NodeView<'a> {
    fn of(member: &'a Member) -> Self {
        Self {
            name: &member.name,
            this: member.is_this,
            state: match member.state {
                MemberState::Alive => "alive",
                MemberState::Dead => "dead",
                MemberState::Stopped => "stopped",
            },
            version: &member.version,
            up: seconds(member.up),
            last_beat: seconds(member.beat_age),
            grace: seconds(member.grace),
            notifications: if member.receives_hints { "listening" } else { "polling" },
            working: member.working,
            parked: member.parked,
            queued: member.queued,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_node_is_shown_with_its_state_and_its_work() {
        let member = Member {
            name: "a".into(),
            version: "0.1.0".into(),
            up: Duration::from_secs(90),
            beat_age: Duration::from_millis(1250),
            grace: Duration::from_secs(6),
            state: MemberState::Alive,
            receives_hints: true,
            is_this: true,
            working: 3,
            parked: 1,
            queued: 2,
        };
        assert_eq!(
            serde_json::to_string(&NodeView::of(&member)).unwrap(),
            r#"{"name":"a","this":true,"state":"alive","version":"0.1.0","up":90.0,"last_beat":1.25,"grace":6.0,"notifications":"listening","working":3,"parked":1,"queued":2}"#
        );
    }
}

//! `session/list`: the contexts of the newest tasks, the newest first.

use sabir_model::{Message, Role, Task};
use serde::Serialize;

use super::json_rpc::RpcError;
use super::server;
use super::turn::CWD;
use crate::client_commands::connection::Connection;

/// So many tasks are looked at.
const MOST_TASKS: usize = 1000;
/// So much of their history is looked at for what the user said.
const HISTORY: u32 = 10;
const LONGEST_TITLE: usize = 80;

#[derive(Debug, Serialize)]
pub struct SessionList {
    sessions: Vec<SessionInfo>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct SessionInfo {
    session_id: String,
    cwd: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    updated_at: Option<String>,
}

/// The sessions of this folder, or all of them. Those that no editor began have no folder, and are listed with `here`.
pub async fn list(connection: &Connection, cwd: Option<&str>, here: &str) -> Result<SessionList, RpcError> {
    let tasks = server::list(connection, None, HISTORY, MOST_TASKS).await?;
    Ok(SessionList { sessions: sessions(&tasks, cwd, here) })
}

/// Of tasks that come newest first.
fn sessions(tasks: &[Task], cwd: Option<&str>, here: &str) -> Vec<SessionInfo> {
    let mut found: Vec<(SessionInfo, bool)> = Vec::new();
    let mut places = std::collections::HashMap::new();
    for task in tasks {
        let place = *places.entry(&task.context).or_insert_with(|| {
            let updated_at = Some(task.status.time).filter(|time| *time != sabir_model::Timestamp::default());
            let session_id = task.context.to_string();
            let updated_at = updated_at.map(|time| time.to_string());
            found.push((SessionInfo { session_id, cwd: here.to_owned(), title: None, updated_at }, false));
            found.len() - 1
        });
        let (info, has_folder) = &mut found[place];
        let mut user = task.history.iter().filter(|message| message.role == Role::User);
        if !*has_folder && let Some(folder) = user.clone().find_map(|message| folder(message)) {
            (info.cwd, *has_folder) = (folder, true);
        }
        // The oldest task gives the title.
        info.title = user.find_map(|message| title(&message.text())).or(info.title.take());
    }
    let is_meant = |(info, has_folder): &(SessionInfo, bool)| cwd.is_none_or(|cwd| *has_folder && info.cwd == cwd);
    found.into_iter().filter(is_meant).map(|(info, _)| info).collect()
}

fn folder(message: &Message) -> Option<String> {
    message.metadata.as_ref()?.text_of(CWD)
}

fn title(text: &str) -> Option<String> {
    let line = text.trim().lines().next()?;
    Some(line.chars().take(LONGEST_TITLE).collect())
}

#[cfg(test)]
mod tests {
    use sabir_model::{AgentId, Birth, ContextId, Json, MessageId, Owner, Part, State, Status, TaskId, Timestamp};

    use super::*;

    fn task(context: &str, time: i64, said: &str, cwd: Option<&str>) -> Task {
        let mut message = Message::new(MessageId::parse("m").unwrap(), Role::User, vec![Part::text(said)]);
        message.metadata = cwd.map(|cwd| Json::with_member(None, CWD, &Json::of(cwd).unwrap()));
        Task {
            id: TaskId::parse(format!("{context}-{time}")).unwrap(),
            context: ContextId::parse(context).unwrap(),
            agent: AgentId::parse("a").unwrap(),
            owner: Owner::anonymous(),
            born: Birth(10),
            created: Timestamp::default(),
            status: Status { state: State::Completed, message: None, time: Timestamp::from_millis(time) },
            turn_over: true,
            artifacts: Vec::new(),
            open: Vec::new(),
            history: vec![message.into()],
            metadata: None,
            usage: None,
            seq: 0,
        }
    }

    #[test]
    fn a_context_is_one_session_with_its_first_words_as_title() {
        let tasks = [
            task("one", 3000, "and then\nthis", Some("/work")),
            task("two", 2000, "from elsewhere", None),
            task("one", 1000, "first words\nmore", Some("/work")),
        ];
        let shown = |cwd| {
            sessions(&tasks, cwd, "/here")
                .into_iter()
                .map(|one| (one.session_id, one.cwd, one.title.unwrap()))
                .collect::<Vec<_>>()
        };
        let row = |id: &str, cwd: &str, title: &str| (id.to_owned(), cwd.to_owned(), title.to_owned());
        let one = row("one", "/work", "first words");
        assert_eq!(shown(None), [one.clone(), row("two", "/here", "from elsewhere")]);
        assert_eq!(shown(Some("/work")), [one]);
        assert_eq!(shown(Some("/other")), []);
        assert_eq!(sessions(&tasks, None, "/")[0].updated_at.as_deref(), Some("1970-01-01T00:00:03.000Z"));
    }
}

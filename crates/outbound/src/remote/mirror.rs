//! What has been received of a remote task, and what is new in what comes next.
//!
//! A stream may break, repeat itself or be answered with the whole task again. The mirror knows what was passed on
//! already, so that each thing is passed on once, whichever way it comes: as a piece of an artifact or within a snapshot.
//! It is pure; `Following` feeds it.

use std::collections::HashMap;
use std::sync::Arc;

use sabir_model::{Artifact, ArtifactId, Chunk, Content, Json, Message, Part, Role, State, Status, StatusChange, Task};

/// Something that is new.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Update {
    /// A piece of an artifact, or all of it.
    Artifact { artifact: Artifact, append: bool, last: bool, metadata: Option<Json> },
    /// A status that is not the last one of its turn.
    Progress(StatusChange),
}

#[derive(Debug, Default)]
pub struct Mirror {
    artifacts: HashMap<ArtifactId, MirroredArtifact>,
    /// About how many bytes the artifacts have.
    weight: usize,
    /// The last one that was seen.
    status: Option<Status>,
    /// The last words of the agent in the history, for servers that answer there and nowhere else.
    last_words: Option<Vec<Part>>,
    received: Received,
}

/// How what was received came.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Received {
    /// Pieces that were appended.
    appended: bool,
    artifacts: bool,
    /// Something does not fit: a piece for an artifact that never began, or one behind its last piece.
    is_odd: bool,
}

#[derive(Debug)]
struct MirroredArtifact {
    /// Neighbouring texts are one, however they were cut.
    parts: Vec<Part>,
    is_closed: bool,
    /// A piece was the same as the one before it. It may have come twice.
    may_repeat: bool,
}

impl Mirror {
    /// `artifacts` are those that were passed on before, by a run that has ended.
    pub fn new(artifacts: &[Arc<Artifact>]) -> Self {
        let mut mirror = Mirror::default();
        for artifact in artifacts {
            mirror.add(artifact.id.clone(), joined(&artifact.parts), false);
        }
        for known in mirror.artifacts.values_mut() {
            // Nobody knows any more how they came.
            known.may_repeat = true;
        }
        mirror
    }

    /// About how many bytes of memory the task takes.
    pub fn weight(&self) -> usize {
        self.weight
    }

    fn add(&mut self, id: ArtifactId, parts: Vec<Part>, is_closed: bool) {
        self.weight += ARTIFACT_WEIGHT + id.as_str().len() + weight_of(&parts);
        self.artifacts.insert(id, MirroredArtifact { parts, is_closed, may_repeat: false });
    }

    pub fn status(&self) -> Option<&Status> {
        self.status.as_ref()
    }

    /// What the agent said last in the history, where it made nothing else.
    pub fn last_words(&self) -> Option<&[Part]> {
        self.last_words.as_deref().filter(|_| self.artifacts.is_empty())
    }

    /// Whether the whole task should be asked for once more before it is believed to be complete. Only a stream whose
    /// events are numbered shows by itself that nothing is missing.
    pub fn may_be_incomplete(&self) -> bool {
        self.received.is_odd || self.received.appended || !self.received.artifacts
    }

    /// Whether these artifacts are all that is known, and not more or less of any.
    pub fn has_just(&self, artifacts: &[Arc<Artifact>]) -> bool {
        let is_same = |artifact: &Arc<Artifact>| {
            self.artifacts.get(&artifact.id).is_some_and(|known| joined(&artifact.parts) == known.parts)
        };
        self.artifacts.len() == artifacts.len() && artifacts.iter().all(is_same)
    }

    /// Takes the task as it is now.
    pub fn take_snapshot(&mut self, task: &Task, updates: &mut Vec<Update>) {
        for artifact in &task.artifacts {
            self.received.artifacts = true;
            self.take_whole(artifact, task.status.state, updates);
        }
        let answer = task.history.last().filter(|message| message.role == Role::Agent);
        self.last_words = answer.map(|message| message.parts.clone()).filter(|parts| !parts.is_empty());
        self.take_status(
            StatusChange {
                status: task.status.clone(),
                is_final: task.status.state.is_terminal(),
                input: Vec::new(),
                begins_turn: false,
                usage: None,
                metadata: None,
            },
            updates,
        );
    }

    fn take_whole(&mut self, artifact: &Artifact, state: State, updates: &mut Vec<Update>) {
        let parts = joined(&artifact.parts);
        let update = |parts: Vec<Part>, append| Update::Artifact {
            artifact: Artifact { parts, ..artifact.clone() },
            append,
            last: false,
            metadata: None,
        };
        let Some(known) = self.artifacts.get_mut(&artifact.id) else {
            self.add(artifact.id.clone(), parts.clone(), false);
            updates.push(update(parts, false));
            return;
        };
        let (before, after) = (weight_of(&known.parts), weight_of(&parts));
        match rest(&known.parts, &parts) {
            Rest::Nothing => return,
            // What is known has more at its end. It came twice, or the server lags behind its own stream; at the end of a
            // turn nothing lags.
            Rest::Less if !known.may_repeat || !ends_turn(state) => return,
            Rest::More(more) => {
                known.parts = parts;
                updates.push(update(more, true));
            }
            Rest::Less | Rest::Different => {
                known.parts.clone_from(&parts);
                known.may_repeat = false;
                updates.push(update(parts, false));
            }
        }
        self.weight = self.weight + after - before;
    }

    /// Takes a piece of an artifact from a stream.
    pub fn take_chunk(&mut self, chunk: Chunk, updates: &mut Vec<Update>) {
        self.received.artifacts = true;
        let Chunk { artifact, append, last, metadata, .. } = chunk;
        let artifact = Arc::unwrap_or_clone(artifact);
        let append = match self.artifacts.get_mut(&artifact.id) {
            Some(known) if append => {
                let was_closed = std::mem::replace(&mut known.is_closed, last);
                known.may_repeat |= ends_with(&known.parts, &artifact.parts);
                extend(&mut known.parts, &artifact.parts);
                self.weight += weight_of(&artifact.parts);
                self.received.appended = true;
                self.received.is_odd |= was_closed;
                true
            }
            Some(known) => {
                let parts = joined(&artifact.parts);
                let is_same = known.parts == parts;
                let (before, after) = (weight_of(&known.parts), weight_of(&parts));
                known.parts = parts;
                known.is_closed = last;
                self.weight = self.weight + after - before;
                // The same frame once more.
                if is_same {
                    return;
                }
                false
            }
            None => {
                self.received.is_odd |= append;
                self.add(artifact.id.clone(), joined(&artifact.parts), last);
                false
            }
        };
        updates.push(Update::Artifact { artifact, append, last, metadata });
    }

    /// Takes a status. One that ends the turn is no update: `status` has it.
    pub fn take_status(&mut self, change: StatusChange, updates: &mut Vec<Update>) {
        let is_over = self.status.as_ref().is_some_and(|status| status.state.is_terminal());
        let is_known = self.status.as_ref().is_some_and(|known| is_same_status(known, &change.status));
        if is_over || is_known {
            return;
        }
        self.status = Some(change.status.clone());
        if !ends_turn(change.status.state) {
            updates.push(Update::Progress(change));
        }
    }
}

/// Terminal states, and those that wait for the caller.
pub fn ends_turn(state: State) -> bool {
    state.is_terminal() || state.is_waiting()
}

fn is_same_status(known: &Status, other: &Status) -> bool {
    let parts = |message: &Option<Arc<Message>>| message.as_ref().map(|message| message.parts.clone());
    known.state == other.state && known.time == other.time && parts(&known.message) == parts(&other.message)
}

/// The parts with neighbouring texts joined, as our own store keeps them.
fn joined(parts: &[Part]) -> Vec<Part> {
    let mut all = Vec::with_capacity(parts.len().min(16));
    extend(&mut all, parts);
    all
}

fn extend(parts: &mut Vec<Part>, more: &[Part]) {
    for part in more {
        match (parts.last_mut().and_then(plain_text_mut), plain_text(part)) {
            (Some(text), Some(more)) => text.push_str(more),
            (None, Some("")) => {}
            _ => parts.push(part.clone()),
        }
    }
}

/// What an artifact takes beside its parts, and a part beside its content.
const ARTIFACT_WEIGHT: usize = 300;
const PART_WEIGHT: usize = 100;

fn weight_of(parts: &[Part]) -> usize {
    let json = |json: &Option<Json>| json.as_ref().map_or(0, |json| json.as_str().len());
    let of_part = |part: &Part| {
        let content = match &part.content {
            Content::Text(text) | Content::Url(text) => text.len(),
            Content::Bytes(bytes) => bytes.as_str().len(),
            Content::Data(data) => data.as_str().len(),
        };
        // Plain texts become one part.
        let own = if is_plain(part) && plain_text(part).is_some() { 0 } else { PART_WEIGHT };
        let names = [&part.filename, &part.media_type].into_iter().flatten().map(String::len).sum::<usize>();
        own + content + names + json(&part.metadata)
    };
    parts.iter().map(of_part).sum()
}

/// Whether these parts are the last of the others.
fn ends_with(parts: &[Part], last: &[Part]) -> bool {
    match (parts.last().and_then(plain_text), last) {
        (Some(text), [only]) if plain_text(only).is_some_and(|last| !last.is_empty() && text.ends_with(last)) => true,
        _ => !last.is_empty() && parts.ends_with(last),
    }
}

fn plain_text(part: &Part) -> Option<&str> {
    match &part.content {
        Content::Text(text) if is_plain(part) => Some(text),
        _ => None,
    }
}

fn plain_text_mut(part: &mut Part) -> Option<&mut String> {
    let is_plain = is_plain(part);
    match &mut part.content {
        Content::Text(text) if is_plain => Some(text),
        _ => None,
    }
}

fn is_plain(part: &Part) -> bool {
    part.filename.is_none() && part.media_type.is_none() && part.metadata.is_none()
}

/// What a whole artifact has beyond what is known of it.
#[derive(Debug, PartialEq, Eq)]
enum Rest {
    Nothing,
    /// It is the beginning of what is known.
    Less,
    More(Vec<Part>),
    Different,
}

fn rest(known: &[Part], whole: &[Part]) -> Rest {
    let same = known.iter().zip(whole).take_while(|(known, whole)| known == whole).count();
    let (known, whole) = (&known[same..], &whole[same..]);
    match (known, whole) {
        ([], []) => Rest::Nothing,
        ([], more) => Rest::More(more.to_vec()),
        (_, []) => Rest::Less,
        ([known], [first, more @ ..]) => match (plain_text(known), plain_text(first)) {
            (Some(known), Some(text)) if text.starts_with(known) => {
                let mut rest = vec![Part::text(&text[known.len()..])];
                rest.extend_from_slice(more);
                Rest::More(rest)
            }
            (Some(known), Some(text)) if more.is_empty() && known.starts_with(text) => Rest::Less,
            _ => Rest::Different,
        },
        _ => Rest::Different,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sabir_model::{AgentId, Birth, ContextId, MessageId, Owner, TaskId, Timestamp};

    use super::*;

    fn artifact(id: &str, texts: &[&str]) -> Artifact {
        Artifact::new(ArtifactId::parse(id).unwrap(), texts.iter().map(|text| Part::text(*text)).collect())
    }

    fn chunk(id: &str, text: &str, append: bool) -> Chunk {
        Chunk { index: 0, artifact: artifact(id, &[text]).into(), append, last: false, metadata: None }
    }

    fn status(state: State, text: &str, time: i64) -> Status {
        let message = Message::new(MessageId::parse("m").unwrap(), Role::Agent, vec![Part::text(text)]);
        let message = (!text.is_empty()).then(|| Arc::new(message));
        Status { state, message, time: Timestamp::from_millis(time) }
    }

    fn snapshot(state: State, artifacts: &[Artifact]) -> Task {
        Task {
            id: TaskId::parse("t").unwrap(),
            context: ContextId::parse("c").unwrap(),
            agent: AgentId::parse("remote").unwrap(),
            owner: Owner::anonymous(),
            born: Birth(10),
            created: Timestamp::default(),
            status: status(state, "", 0),
            turn_over: state.is_terminal(),
            artifacts: artifacts.iter().cloned().map(Arc::new).collect(),
            open: Vec::new(),
            history: Vec::new(),
            metadata: None,
            usage: None,
            seq: 0,
        }
    }

    enum Input {
        Chunk(Chunk),
        Snapshot(Task),
        Status(State, &'static str, i64),
    }

    fn feed(mirror: &mut Mirror, input: Input) -> Vec<Update> {
        let mut updates = Vec::new();
        match input {
            Input::Chunk(chunk) => mirror.take_chunk(chunk, &mut updates),
            Input::Snapshot(task) => mirror.take_snapshot(&task, &mut updates),
            Input::Status(state, text, time) => {
                let status = status(state, text, time);
                let is_final = status.state.is_terminal();
                let change =
                    StatusChange { status, is_final, input: vec![], begins_turn: false, usage: None, metadata: None };
                mirror.take_status(change, &mut updates);
            }
        }
        updates
    }

    fn say(updates: Vec<Update>) -> String {
        let each = updates.into_iter().map(|update| match update {
            Update::Artifact { artifact, append, .. } => {
                let texts: Vec<&str> = artifact.parts.iter().filter_map(Part::as_text).collect();
                format!("{}{}{}", artifact.id, if append { "+" } else { "=" }, texts.join("|"))
            }
            Update::Progress(change) => {
                let text = change.status.message.map(|message| format!(" {}", message.parts[0].as_text().unwrap()));
                format!("{:?}{}", change.status.state, text.unwrap_or_default())
            }
        });
        each.collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn each_thing_is_passed_on_once() {
        use Input::{Chunk, Snapshot, Status};
        let working = |artifacts: &[Artifact]| Snapshot(snapshot(State::Working, artifacts));
        for (inputs, expected) in [
            (vec![Chunk(chunk("a", "x", false)), Chunk(chunk("a", "y", true))], "a=x; a+y"),
            // The same first frame again, and a snapshot with what is known.
            (vec![Chunk(chunk("a", "x", false)), Chunk(chunk("a", "x", false))], "a=x; "),
            (vec![Chunk(chunk("a", "x", false)), working(&[artifact("a", &["x"])])], "a=x; Working"),
            // A snapshot has more, or less, or something else.
            (
                vec![Chunk(chunk("a", "x", false)), working(&[artifact("a", &["x", "y", "z"]), artifact("b", &["q"])])],
                "a=x; a+yz, b=q, Working",
            ),
            (vec![Chunk(chunk("a", "xyz", false)), working(&[artifact("a", &["x"])])], "a=xyz; Working"),
            (vec![Chunk(chunk("a", "xyz", false)), working(&[artifact("a", &["xa"])])], "a=xyz; a=xa, Working"),
            (vec![Chunk(chunk("a", "xyz", false)), working(&[])], "a=xyz; Working"),
            // A piece that came twice is taken back at the end, and not before. One that was said twice stays.
            (
                vec![
                    Chunk(chunk("a", "x", false)),
                    Chunk(chunk("a", "y", true)),
                    Chunk(chunk("a", "y", true)),
                    working(&[artifact("a", &["x", "y"])]),
                    Snapshot(snapshot(State::Completed, &[artifact("a", &["x", "y"])])),
                ],
                "a=x; a+y; a+y; Working; a=xy",
            ),
            (
                vec![
                    Chunk(chunk("a", "xy", false)),
                    Chunk(chunk("a", "z", true)),
                    Snapshot(snapshot(State::Completed, &[artifact("a", &["xy"])])),
                ],
                "a=xy; a+z; ",
            ),
            (
                vec![
                    Chunk(chunk("a", "y", false)),
                    Chunk(chunk("a", "y", true)),
                    Snapshot(snapshot(State::Completed, &[artifact("a", &["y", "y"])])),
                ],
                "a=y; a+y; ",
            ),
            // A piece for an artifact that never began is its beginning.
            (vec![Chunk(chunk("a", "y", true)), working(&[artifact("a", &["x", "y"])])], "a=y; a=xy, Working"),
            // Statuses that say the same, and those behind the end.
            (
                vec![
                    Status(State::Working, "one", 1),
                    Status(State::Working, "one", 1),
                    Status(State::Working, "one", 2),
                    Status(State::Working, "two", 2),
                ],
                "Working one; ; Working one; Working two",
            ),
            (vec![Status(State::Completed, "", 1), Status(State::Working, "late", 2), working(&[])], "; ; "),
        ] {
            let mut mirror = Mirror::default();
            let said: Vec<String> = inputs.into_iter().map(|input| say(feed(&mut mirror, input))).collect();
            assert_eq!(said.join("; "), expected);
        }
    }

    #[test]
    fn what_an_earlier_run_passed_on_is_known() {
        let mut mirror = Mirror::new(&[Arc::new(artifact("a", &["x"]))]);
        let task = snapshot(State::Working, &[artifact("a", &["x", "y"])]);
        assert_eq!(say(feed(&mut mirror, Input::Snapshot(task))), "a+y, Working");
        let task = snapshot(State::Completed, &[artifact("a", &["x"])]);
        assert_eq!(say(feed(&mut mirror, Input::Snapshot(task))), "a=x");
    }

    proptest! {
        /// Whatever is cut, repeated as a snapshot or resumed, the caller ends up with what the remote has.
        #[test]
        fn the_copy_ends_up_equal(texts in prop::collection::vec("[ab]{0,3}", 1..12), snapshots in prop::collection::vec(any::<bool>(), 12)) {
            let mut mirror = Mirror::default();
            let mut copy = String::new();
            let mut whole: Vec<&str> = Vec::new();
            let mut missed = false;
            for (index, text) in texts.iter().enumerate() {
                whole.push(text);
                let input = if snapshots[index] || missed {
                    missed = false;
                    Input::Snapshot(snapshot(State::Working, &[artifact("a", &whole)]))
                } else if index % 4 == 3 {
                    // Lost on the way; the next one is a snapshot.
                    missed = true;
                    continue;
                } else {
                    Input::Chunk(chunk("a", text, index > 0))
                };
                for update in feed(&mut mirror, input) {
                    if let Update::Artifact { artifact, append, .. } = update {
                        if !append {
                            copy.clear();
                        }
                        copy.extend(artifact.parts.iter().filter_map(Part::as_text));
                    }
                }
            }
            if !missed {
                prop_assert_eq!(copy, texts.concat());
            }
        }
    }
}

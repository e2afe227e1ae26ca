//! Streams: every reader gets every event once and in order, also late and slow readers.

use std::sync::Arc;
use std::time::Duration;

use sabir_engine::{AgentError, ArtifactUpdate, Batch, EngineSettings, Limits, Outcome, RetentionPolicy, Turn};
use sabir_model::{Artifact, Call, Error, OnFinishedSubscribe, Part, State, Subscribe, TaskId};
use sabir_store::MemoryStore;
use sabir_testkit::scripted::ScriptedAgent;

use crate::fixture::{Fixture, asking, drain, echo, stream_of, text, to};

/// `stream N`: N chunks without a pause.
fn streaming() -> ScriptedAgent {
    ScriptedAgent::new(|turn: Turn| async move {
        let count: u64 = turn.message().text().parse()?;
        let id = turn.new_artifact_id();
        for i in 1..=count {
            let artifact = Artifact::new(id.clone(), vec![Part::text(format!("{i} "))]);
            turn.artifact_update(ArtifactUpdate::new(artifact).append(i > 1).last(i == count)).await;
        }
        Ok::<_, AgentError>(Outcome::Completed(Vec::new()))
    })
}

fn numbers(frames: &[(u64, String)]) -> Vec<u64> {
    frames.iter().map(|(seq, _)| *seq).collect()
}

#[tokio::test]
async fn a_stream_shows_every_event_once_in_order() {
    let fixture = Fixture::with(streaming()).await;
    let frames = drain(&mut fixture.stream(text("3")).await).await;
    let words: Vec<&str> = frames.iter().map(|(_, words)| words.as_str()).collect();
    assert_eq!(words, ["created", "Working", "chunk 1 ", "chunk 2 ", "chunk 3 .", "Completed."]);
    assert_eq!(numbers(&frames), [1, 2, 3, 4, 5, 6]);
}

#[tokio::test]
async fn a_burst_from_an_agent_that_never_yields_arrives_whole() {
    let fixture = Fixture::with(streaming()).await;
    let frames = drain(&mut fixture.stream(text("10000")).await).await;
    assert_eq!(numbers(&frames), (1..=10_003).collect::<Vec<u64>>());
    let task = fixture.get(&fixture_task(&fixture).await).await;
    let expected: String = (1..=10_000).map(|i| format!("{i} ")).collect();
    assert_eq!(task.artifacts[0].parts, [Part::text(expected)]);
}

async fn fixture_task(fixture: &Fixture) -> TaskId {
    let query = sabir_store::Query {
        owner: sabir_model::Owner::anonymous(),
        own_agents: None,
        others: sabir_store::Others::None,
        agent: None,
        context: None,
        state: None,
        since: None,
        from: None,
        limit: 1,
        max_bytes: usize::MAX,
        artifacts: sabir_model::Wanted::Yes,
        history: None,
    };
    fixture.store.list(query).await.unwrap().tasks[0].id.clone()
}

#[tokio::test]
async fn readers_who_are_behind_at_the_same_place_share_what_they_read() {
    let fixture = Fixture::with(streaming()).await;
    let mut first = fixture.stream(text("2000")).await;
    let id = first.task().clone();
    let all = drain(&mut first).await;
    let (mut one, mut other) =
        (fixture.subscribe(&id, Some(3)).await.unwrap(), fixture.subscribe(&id, Some(3)).await.unwrap());
    loop {
        let (Some(Ok(Batch::Events(read))), Some(Ok(Batch::Events(same)))) = (one.next().await, other.next().await)
        else {
            break;
        };
        assert_eq!(read.len(), same.len());
        assert!(read.iter().zip(&same).all(|(a, b)| Arc::ptr_eq(a, b)), "event {} was read twice", read[0].seq);
    }
    // A later reader begins in the middle of a page that another one holds, and misses nothing.
    let mut holder = fixture.subscribe(&id, Some(100)).await.unwrap();
    holder.next().await;
    for after in [99, 100, 101, 130, 163, 164, 165] {
        let rest = drain(&mut fixture.subscribe(&id, Some(after)).await.unwrap()).await;
        assert_eq!(rest, all[after as usize..], "after {after}");
    }
}

#[tokio::test]
async fn a_reader_who_comes_back_gets_exactly_what_it_missed() {
    let fixture = Fixture::with(streaming()).await;
    let mut first = fixture.stream(text("2000")).await;
    let id = first.task().clone();
    let all = drain(&mut first).await;
    for after in [0, 1, 2, 777, 2002, 2003] {
        let mut again = fixture.subscribe(&id, Some(after)).await.unwrap();
        assert_eq!(drain(&mut again).await, all[after as usize..], "after {after}");
    }
    let Err(Error::Invalid(_)) = fixture.subscribe(&id, Some(2004)).await else { panic!("there is no such event") };
}

#[tokio::test]
async fn two_hundred_readers_see_the_same() {
    let fixture = Arc::new(Fixture::with(streaming()).await);
    let mut first = fixture.stream(text("3000")).await;
    let readers: Vec<_> = (0..200)
        .map(|i| {
            let (fixture, id) = (fixture.clone(), first.task().clone());
            tokio::spawn(async move {
                let mut stream = fixture.subscribe(&id, Some(0)).await.unwrap();
                if i % 10 == 0 {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                drain(&mut stream).await
            })
        })
        .collect();
    let expected = drain(&mut first).await;
    assert_eq!(expected.len(), 3003);
    for reader in readers {
        assert_eq!(reader.await.unwrap(), expected);
    }
}

#[tokio::test]
async fn a_subscription_without_a_cursor_starts_with_a_snapshot() {
    let fixture = Fixture::with(asking()).await;
    let waiting = fixture.task(text("ask which?")).await;
    let mut stream = fixture.subscribe(&waiting.id, None).await.unwrap();
    let task = waiting.id.clone();
    let (frames, _) = tokio::join!(drain(&mut stream), async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        fixture.task(to(&task, text("friday"))).await
    });
    let words: Vec<&str> = frames.iter().map(|(_, words)| words.as_str()).collect();
    assert_eq!(words, ["snapshot InputRequired", "Working", "Completed friday."]);
    assert_eq!(numbers(&frames), [3, 4, 5]);
}

#[tokio::test]
async fn a_stream_ends_with_a_turn_that_ends_by_asking() {
    let fixture = Fixture::with(asking()).await;
    let mut stream = fixture.stream(text("ask which?")).await;
    let id = stream.task().clone();
    let frames = drain(&mut stream).await;
    assert_eq!(frames.last().unwrap().1, "InputRequired which?.");
    let mut continued = fixture.stream(to(&id, text("friday"))).await;
    let frames = drain(&mut continued).await;
    assert_eq!(frames, [(4, "snapshot Working".into()), (5, "Completed friday.".into())]);
    let mut replay = fixture.subscribe(&id, Some(1)).await.unwrap();
    let words: Vec<String> = drain(&mut replay).await.into_iter().map(|(_, words)| words).collect();
    assert_eq!(words, ["Working", "InputRequired which?.", "Working", "Completed friday."]);
}

#[tokio::test]
async fn a_finished_task_is_refused_or_shown_once_more() {
    let fixture = Fixture::with(echo()).await;
    let done = fixture.task(text("x")).await;
    assert!(matches!(fixture.subscribe(&done.id, None).await, Err(Error::TaskFinished(_))));
    let on_finished = OnFinishedSubscribe::ShowEnd;
    let call = Call::Subscribe(Subscribe { agent: None, task: done.id.clone(), after: None, on_finished });
    let frames = drain(&mut stream_of(fixture.call(call).await.unwrap())).await;
    assert_eq!(frames, [(3, "snapshot Completed".into()), (3, "Completed x.".into())]);
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_disconnects_changes_nothing() {
    let fixture = Fixture::with(streaming()).await;
    for reads in 0..4 {
        let mut stream = fixture.stream(text("500")).await;
        let id = stream.task().clone();
        for _ in 0..reads {
            stream.next().await;
        }
        drop(stream);
        let mut again = fixture.subscribe(&id, Some(0)).await.unwrap();
        assert_eq!(drain(&mut again).await.len(), 503);
    }
    let task = {
        // A blocking sender that disconnects before the answer.
        tokio::select! {
            biased;
            _ = fixture.send(text("500")) => panic!("nothing is stored that fast"),
            () = std::future::ready(()) => {}
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        fixture_task(&fixture).await
    };
    assert_eq!(fixture.get(&task).await.status.state, State::Completed);
}

#[tokio::test]
async fn a_reader_of_a_deleted_task_gets_an_error() {
    let retention = RetentionPolicy { max_tasks: Some(0), ..RetentionPolicy::default() };
    let settings = EngineSettings { retention, ..EngineSettings::default() };
    let fixture = Fixture::on(Arc::new(MemoryStore::new()), streaming(), Limits::default(), settings).await;
    let mut slow = fixture.stream(text("5000")).await;
    let Some(Ok(Batch::Events(first))) = slow.next().await else { panic!("it begins") };
    let mut quick = fixture.subscribe(slow.task(), Some(0)).await.unwrap();
    drain(&mut quick).await;
    drop(quick);
    assert_eq!(fixture.engine.sweep().await, 1);
    let mut last = first.last().unwrap().seq;
    let end = loop {
        match slow.next().await {
            Some(Ok(Batch::Events(entries))) => last = entries.last().unwrap().seq,
            Some(Ok(Batch::Snapshot(_))) => panic!("it began with events"),
            end => break end,
        }
    };
    assert!(matches!(end, Some(Err(Error::TaskNotFound(_)))), "not a silent end after event {last}");
    assert!(slow.next().await.is_none());
}

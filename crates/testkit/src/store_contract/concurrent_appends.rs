//! Many appends at once, so that they share a commit where a store has such.

use futures_util::future::join_all;
use sabir_model::State;
use sabir_store::Store;

use super::fixture::*;

pub async fn a_refused_append_does_not_hurt_its_neighbours(store: &dyn Store) {
    let known = create(store, ["ann", "echo", "known", "c1"], 0).await;
    let mut expected = Vec::new();
    let mut appends = Vec::new();
    for round in 0..60u64 {
        let id = format!("t{round}");
        let name = ["ann", "echo", id.as_str(), "c1"];
        let key = format!("k{round}");
        expected.push("up to 2".to_owned());
        appends.push(start(store, name, Some(&key), 10, &[status(State::Completed, 20)]));
        expected.push(format!("exists: {id}"));
        appends.push(start(store, name, None, 30, &[]));
        expected.push(format!("exists: {id}"));
        appends.push(start(store, ["ann", "echo", "never", "c1"], Some(&key), 30, &[]));
        expected.push(format!("up to {}", round + 2));
        appends.push(push(store, known, round + 1, &[chunk("a")]));
        expected.push("conflict".to_owned());
        appends.push(push(store, known, round + 1, &[status(State::Failed, 40)]));
    }
    let answers: Vec<String> = join_all(appends).await.into_iter().map(say).collect();
    assert_eq!(answers, expected);
    assert_eq!(find(store, "ann", None, "never").await, None);
    let row = find(store, "ann", None, "known").await.unwrap();
    assert_eq!((row.state, row.seq), (State::Submitted, 61));
    for (state, total) in [(None, 61), (Some(State::Completed), 60), (Some(State::Failed), 0)] {
        assert_eq!(list(store, sabir_store::Query { state, ..all_of("ann") }).await.total, total, "{state:?}");
    }
}

pub async fn of_many_appends_at_one_place_one_wins(store: &dyn Store) {
    let no = create(store, ["ann", "echo", "t1", "c1"], 0).await;
    let answers = join_all((0..50).map(|_| push(store, no, 1, &[chunk("a"), chunk("b")]))).await;
    let won = answers.into_iter().map(say).filter(|answer| answer == "up to 3").count();
    assert_eq!(won, 1);
    assert_eq!(events(store, no).await.len(), 3);

    let creations = join_all((0..50).map(|_| start(store, ["ann", "echo", "t2", "c1"], Some("k"), 0, &[]))).await;
    assert_eq!(creations.into_iter().filter(Result::is_ok).count(), 1);
    assert_eq!(list(store, all_of("ann")).await.total, 2);
}

pub async fn appends_are_stored_in_the_order_of_the_calls(store: &dyn Store) {
    let no = create(store, ["ann", "echo", "t1", "c1"], 0).await;
    // Awaited the other way round; what counts is when they were made.
    let mut appends: Vec<_> = (1..100).map(|after| push(store, no, after, &[chunk(&after.to_string())])).collect();
    appends.reverse();
    for answer in join_all(appends).await {
        answer.unwrap();
    }
    let chunks: Vec<_> = (1..100).map(|number| chunk(&number.to_string())).collect();
    assert_eq!(events(store, no).await[1..], chunks);
}

pub async fn an_append_that_nobody_waits_for_is_stored(store: &dyn Store) {
    let no = create(store, ["ann", "echo", "t1", "c1"], 0).await;
    drop(push(store, no, 1, &[chunk("a")]));
    push(store, no, 2, &[chunk("b")]).await.unwrap();
    assert_eq!(events(store, no).await, [created(0), chunk("a"), chunk("b")]);
}

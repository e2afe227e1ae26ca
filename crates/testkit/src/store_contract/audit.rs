//! The audit log: entries are numbered, found, and deleted by retention alone.

use sabir_model::{Owner, State};
use sabir_store::{
    AuditAction, AuditEntry, AuditLog, AuditPage, AuditQuery, AuditRetention, AuditTrimmed, Retention, SideRow, Store,
};

use super::fixture::*;

/// One store in its two roles.
pub(super) type Both<'a> = (&'a dyn Store, &'a dyn AuditLog);

/// More than a store looks at for one page.
const MANY: usize = 60_000;

fn entry(action: AuditAction, moment: i64) -> AuditEntry {
    AuditEntry {
        time: at(moment),
        caller: Owner::new("acme", "token:ann"),
        peer: None,
        action,
        agent: None,
        task: None,
        no: None,
        owner: None,
        refusal: None,
        detail: String::new(),
    }
}

fn whole(moment: i64) -> AuditEntry {
    AuditEntry {
        peer: "2001:db8::7".parse().ok(),
        agent: Some(agent("echo")),
        task: Some(task("t1")),
        owner: Some(owner("bob")),
        refusal: Some("forbidden".into()),
        detail: "question q2: yes".into(),
        ..entry(AuditAction::Answer, moment)
    }
}

async fn all(log: &dyn AuditLog) -> AuditPage {
    log.entries(AuditQuery::oldest(1_000)).await.unwrap()
}

fn numbers(page: &AuditPage) -> String {
    let numbers: Vec<String> = page.records.iter().map(|record| record.number.to_string()).collect();
    let next = page.next.map(|next| format!(", then after {next}"));
    numbers.join(" ") + &next.unwrap_or_default()
}

pub async fn entries_are_numbered_in_their_order((_, log): Both<'_>) {
    assert_eq!(all(log).await, AuditPage::default());
    for moment in 1..=3 {
        log.record(whole(moment)).await.unwrap();
    }
    let page = all(log).await;
    assert_eq!(numbers(&page), "1 2 3");
    assert_eq!(page.records[1].entry, whole(2));
    log.record(entry(AuditAction::List, 4)).await.unwrap();
    assert_eq!(all(log).await.records[3].entry, entry(AuditAction::List, 4));
}

pub async fn an_entry_is_stored_with_its_append((store, log): Both<'_>) {
    let no = create(store, ["ann", "echo", "t1", "c1"], 0).await;
    let row = || SideRow::Audit(Box::new(whole(1)));
    push_with(store, no, 1, &[status(State::Working, 1)], None, &[row()]).await.unwrap();
    // Without events too.
    push_with(store, no, 2, &[], None, &[row(), row()]).await.unwrap();
    // A refused append leaves no entry.
    push_with(store, no, 7, &[status(State::Working, 2)], None, &[row()]).await.unwrap_err();
    log.record(whole(2)).await.unwrap();
    let page = all(log).await;
    assert_eq!(numbers(&page), "1 2 3 4");
    let tasks: Vec<_> = page.records.iter().map(|record| record.entry.no).collect();
    assert_eq!(tasks, [Some(no), Some(no), Some(no), None]);
    assert_eq!(AuditEntry { no: None, ..page.records[0].entry.clone() }, whole(1));
}

pub async fn every_action_is_read_as_it_was_stored((_, log): Both<'_>) {
    for action in AuditAction::ALL {
        log.record(entry(action, 1)).await.unwrap();
    }
    let read: Vec<_> = all(log).await.records.iter().map(|record| record.entry.action).collect();
    assert_eq!(read, AuditAction::ALL);
}

pub async fn entries_come_in_pages((_, log): Both<'_>) {
    for moment in 1..=5 {
        log.record(entry(AuditAction::Create, moment)).await.unwrap();
    }
    for (after, limit, expected) in [
        (0, 2, "1 2, then after 2"),
        (2, 2, "3 4, then after 4"),
        (4, 2, "5"),
        (3, 2, "4 5"),
        (5, 2, ""),
        (u64::MAX, 2, ""),
        (0, 5, "1 2 3 4 5"),
    ] {
        let page = log.entries(AuditQuery { after, ..AuditQuery::oldest(limit) }).await.unwrap();
        assert_eq!(numbers(&page), expected, "after {after}, {limit}");
    }
}

pub async fn entries_are_found_by_each_filter((_, log): Both<'_>) {
    let of = |name: &str, action, moment| AuditEntry { caller: Owner::new("acme", name), ..entry(action, moment) };
    log.record(of("token:ann", AuditAction::Create, 10)).await.unwrap();
    log.record(of("token:bob", AuditAction::Cancel, 20)).await.unwrap();
    log.record(AuditEntry { task: Some(task("t1")), ..of("token:ann", AuditAction::Cancel, 30) }).await.unwrap();
    log.record(AuditEntry { caller: Owner::anonymous(), ..entry(AuditAction::Cancel, 40) }).await.unwrap();
    log.record(AuditEntry { caller: Owner::new("other", "token:ann"), ..whole(50) }).await.unwrap();
    let any = || AuditQuery::oldest(10);
    let subject = |name: &str| AuditQuery { subject: Some(name.into()), ..any() };
    for (query, expected) in [
        (subject("token:ann"), "1 3 5"),
        (subject("token:ann@acme"), "1 3"),
        (subject("ann"), ""),
        (subject("anonymous"), "4"),
        (AuditQuery { task: Some(task("t1")), ..any() }, "3 5"),
        (AuditQuery { action: Some(AuditAction::Cancel), ..any() }, "2 3 4"),
        (AuditQuery { since: Some(at(30)), ..any() }, "3 4 5"),
        (AuditQuery { since: Some(at(20)), action: Some(AuditAction::Cancel), ..subject("token:ann") }, "3"),
        (AuditQuery { limit: 1, ..subject("token:ann") }, "1, then after 1"),
        (AuditQuery { limit: 1, after: 1, ..subject("token:ann") }, "3, then after 3"),
    ] {
        assert_eq!(numbers(&log.entries(query.clone()).await.unwrap()), expected, "{query:?}");
    }
}

pub async fn a_rare_entry_is_found_page_by_page((store, log): Both<'_>) {
    let no = create(store, ["ann", "echo", "t1", "c1"], 0).await;
    let rows: Vec<SideRow> = (0..MANY).map(|_| SideRow::Audit(Box::new(entry(AuditAction::Message, 1)))).collect();
    push_with(store, no, 1, &[], None, &rows).await.unwrap();
    log.record(entry(AuditAction::Cancel, 2)).await.unwrap();
    let (mut after, mut pages, mut found) = (0, 0, Vec::new());
    loop {
        let query = AuditQuery { after, action: Some(AuditAction::Cancel), ..AuditQuery::oldest(10) };
        let page = log.entries(query).await.unwrap();
        pages += 1;
        found.extend(page.records);
        match page.next {
            Some(next) => after = next,
            None => break,
        }
    }
    assert!(pages > 1, "one page looked at everything");
    assert_eq!(found.iter().map(|record| record.number).collect::<Vec<_>>(), [MANY as u64 + 1]);
}

pub async fn a_deleted_task_keeps_its_entries((store, log): Both<'_>) {
    let no = create(store, ["ann", "echo", "t1", "c1"], 0).await;
    let row = SideRow::Audit(Box::new(whole(1)));
    push_with(store, no, 1, &[status(State::Completed, 1)], None, &[row]).await.unwrap();
    let retention = Retention { settled_before: Some(at(100)), keep: Some(0), ..Retention::default() };
    assert_eq!(sweep_all(store, retention).await, 1);
    let page = all(log).await;
    assert_eq!((numbers(&page).as_str(), page.records[0].entry.no), ("1", Some(no)));
}

pub async fn the_oldest_entries_are_deleted((_, log): Both<'_>) {
    // The fourth has an earlier time than the third: the clock was set back.
    for moment in [10, 20, 30, 15, 50, 60] {
        log.record(entry(AuditAction::Create, moment)).await.unwrap();
    }
    let before = |moment| AuditRetention { before: Some(at(moment)), keep: None };
    let keep = |count| AuditRetention { before: None, keep: Some(count) };
    let trimmed = |old, surplus| AuditTrimmed { old, surplus, more: false };
    for (retention, expected, left) in [
        (AuditRetention::default(), trimmed(0, 0), "1 2 3 4 5 6"),
        (before(10), trimmed(0, 0), "1 2 3 4 5 6"),
        (before(20), trimmed(1, 0), "2 3 4 5 6"),
        (keep(5), trimmed(0, 0), "2 3 4 5 6"),
        (keep(4), trimmed(0, 1), "3 4 5 6"),
        // The oldest stays, and so do those behind it.
        (before(20), trimmed(0, 0), "3 4 5 6"),
        (AuditRetention { before: Some(at(31)), keep: Some(1) }, trimmed(2, 1), "6"),
        (keep(0), trimmed(0, 1), ""),
        (keep(0), trimmed(0, 0), ""),
    ] {
        assert_eq!(log.trim(retention).await.unwrap(), expected, "{retention:?}");
        assert_eq!(numbers(&all(log).await), left, "{retention:?}");
    }
    log.record(entry(AuditAction::Create, 70)).await.unwrap();
    assert_eq!(numbers(&all(log).await), "7", "no number is used twice");
}

pub async fn a_trim_is_bounded((store, log): Both<'_>) {
    let no = create(store, ["ann", "echo", "t1", "c1"], 0).await;
    let rows: Vec<SideRow> = (0..5_000).map(|_| SideRow::Audit(Box::new(entry(AuditAction::Message, 1)))).collect();
    push_with(store, no, 1, &[], None, &rows).await.unwrap();
    let (mut slices, mut surplus) = (0, 0);
    loop {
        let trimmed = log.trim(AuditRetention { before: None, keep: Some(3) }).await.unwrap();
        assert!(trimmed.surplus <= 2_000, "{trimmed:?}");
        (slices, surplus) = (slices + 1, surplus + trimmed.surplus);
        if !trimmed.more {
            break;
        }
    }
    assert_eq!((slices, surplus, numbers(&all(log).await).as_str()), (3, 4_997, "4998 4999 5000"));
}

/// Opens the log that lives in the case's folder.
pub(super) type OpenLog<'a> = &'a dyn Fn() -> Box<dyn AuditLog>;

pub async fn entries_are_there_again(open: OpenLog<'_>) {
    let log = open();
    log.record(whole(1)).await.unwrap();
    log.record(entry(AuditAction::Cancel, 2)).await.unwrap();
    let page = all(log.as_ref()).await;
    drop(log);
    let log = open();
    assert_eq!(all(log.as_ref()).await, page);
    log.trim(AuditRetention { before: None, keep: Some(0) }).await.unwrap();
    drop(log);
    let log = open();
    log.record(whole(3)).await.unwrap();
    assert_eq!(numbers(&all(log.as_ref()).await), "3", "no number is used twice, also over restarts");
}

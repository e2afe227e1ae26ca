//! What every store must do, as small cases that know nothing of how it is done.
//!
//! An implementation runs them all in one line; each case gets an empty store in a folder of its own.
//! Where a store can be opened again, it also runs the second list. A store is opened inside a runtime with several threads,
//! where it may start tasks of its own.

mod appends;
mod audit;
mod concurrent_appends;
mod damage;
pub mod fixture;
mod lists;
mod lookups;
mod reopening;
mod retention;
mod side_rows;
mod stored_bytes;
mod summaries;
mod webhooks;

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::pin::Pin;

use sabir_model::Seq;
use sabir_store::{AuditLog, Outbox, Store, TaskNo};
use tokio::runtime::Handle;

type CaseFuture<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// Opens the store that lives in the case's folder.
type OpenStore<'a> = &'a dyn Fn() -> Box<dyn Store>;

/// Spoils what is stored of a task, behind the back of the store.
type Spoil<'a> = &'a dyn Fn(TaskNo, Spoiled);

/// What of a task is spoiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spoiled {
    /// The event of this number, and it may be the others of the same append.
    Event(Seq),
    /// Every message in its inbox.
    Inbox,
}

type DamageCase = for<'a> fn((&'a dyn Store, Spoil<'a>)) -> CaseFuture<'a>;

type StoreCase = fn(&dyn Store) -> CaseFuture<'_>;
type ReopeningCase = for<'a> fn(OpenStore<'a>) -> CaseFuture<'a>;
type WebhookCase = for<'a> fn(webhooks::Both<'a>) -> CaseFuture<'a>;
type AuditCase = for<'a> fn(audit::Both<'a>) -> CaseFuture<'a>;
type AuditReopeningCase = for<'a> fn(audit::OpenLog<'a>) -> CaseFuture<'a>;

macro_rules! cases {
    ($($module:ident: $($case:ident),+;)+) => {
        &[$($((stringify!($case), |given| Box::pin($module::$case(given)))),+),+]
    };
}

const CASES: &[(&str, StoreCase)] = cases! {
    appends:
        a_new_task_is_there_with_its_events,
        numbers_have_no_gaps,
        events_come_in_pages,
        a_page_of_events_is_about_a_megabyte,
        the_row_follows_every_status_and_no_chunk,
        a_wrong_number_conflicts_and_leaves_no_trace,
        an_unknown_task_conflicts,
        an_id_is_taken_once_for_an_owner_and_agent,
        a_key_alone_decides,
        a_new_task_begins_with_its_creation,
        carried_json_stays_byte_exact;
    concurrent_appends:
        a_refused_append_does_not_hurt_its_neighbours,
        of_many_appends_at_one_place_one_wins,
        appends_are_stored_in_the_order_of_the_calls,
        an_append_that_nobody_waits_for_is_stored;
    lookups:
        a_load_is_the_fold_of_all_events,
        a_snapshot_of_another_moment_does_no_harm,
        one_id_at_two_agents,
        nobody_sees_the_tasks_of_another_owner,
        an_id_is_found_at_all_owners,
        tasks_of_an_owner_come_in_pages,
        tasks_at_rest_get_another_owner,
        who_waits_in_a_context,
        who_has_waited_longest,
        a_conversation_is_told_in_order,
        what_is_not_settled,
        a_check_succeeds;
    lists:
        the_newest_status_comes_first,
        equal_times_are_ordered_by_id,
        pages_make_up_the_whole,
        a_cursor_stays_good_while_tasks_change,
        equal_places_at_two_agents_are_not_skipped,
        tasks_of_all_owners_make_up_one_list,
        only_some_agents_of_the_owner_are_listed,
        tasks_that_wait_for_an_approver_are_listed_beside_the_owners,
        every_filter_gives_its_page_and_total,
        totals_follow_the_states,
        artifacts_come_only_where_they_are_wanted,
        the_newest_messages_are_listed,
        a_page_ends_by_its_bytes,
        a_page_of_a_hundred;
    side_rows:
        messages_wait_in_order_until_taken,
        an_agent_remembers_and_forgets,
        an_agent_remembers_a_task,
        a_key_of_a_later_message_leads_to_its_task,
        a_request_to_cancel_and_attempts_last_until_the_task_settles,
        side_rows_of_a_refused_append_are_refused_too;
    retention:
        old_settled_tasks_go,
        the_newest_settled_tasks_stay,
        either_rule_lets_a_task_go,
        nothing_goes_without_a_rule,
        a_task_that_is_gone_leaves_nothing,
        the_highest_number_is_known_when_its_task_is_gone,
        a_sweep_is_bounded;
    stored_bytes:
        every_append_says_how_many_bytes_more_there_are,
        bytes_of_deleted_tasks_are_free,
        bytes_move_with_their_task;
    summaries:
        summaries_have_the_order_and_the_filters_of_lists,
        summaries_of_very_many_owners_make_up_one_list,
        a_summary_has_the_row_the_status_and_the_first_message,
        a_page_of_summaries_ends_by_its_bytes,
        tasks_are_counted_by_agent_and_state,
        the_bytes_of_one_task_are_what_its_owner_has;
};

const REOPENING: &[(&str, ReopeningCase)] = cases! {
    reopening:
        everything_is_there_again,
        numbers_go_on,
        no_number_is_given_twice,
        totals_are_right_again,
        stored_bytes_are_the_same_again,
        a_thousand_tasks_made_at_once_are_there_again;
};

const WEBHOOKS: &[(&str, WebhookCase)] = cases! {
    webhooks:
        a_webhook_is_due_when_a_status_is_stored,
        a_webhook_for_all_events_is_due_with_an_artifact,
        a_webhook_that_comes_with_its_task_gets_everything,
        deliveries_follow_the_log,
        a_settled_task_sends_its_last_event,
        a_webhook_that_is_replaced_keeps_what_is_to_be_sent,
        a_failed_delivery_is_due_later,
        what_is_given_up_can_be_retried_or_dropped,
        a_retry_waits_for_no_later_delivery,
        a_clock_that_was_set_back_leaves_nothing_behind,
        receivers_do_not_hide_each_other,
        webhooks_are_listed_and_removed,
        a_task_has_so_many_webhooks_at_most,
        retention_spares_what_is_to_be_sent,
        a_task_can_be_loaded_as_of_any_event,
        who_waits_for_something_due_is_woken;
};

const AUDIT: &[(&str, AuditCase)] = cases! {
    audit:
        entries_are_numbered_in_their_order,
        an_entry_is_stored_with_its_append,
        every_action_is_read_as_it_was_stored,
        entries_come_in_pages,
        entries_are_found_by_each_filter,
        a_rare_entry_is_found_page_by_page,
        a_deleted_task_keeps_its_entries,
        the_oldest_entries_are_deleted,
        a_trim_is_bounded;
};

const AUDIT_REOPENING: &[(&str, AuditReopeningCase)] = cases! {
    audit: entries_are_there_again;
};

const DAMAGE: &[(&str, DamageCase)] = cases! {
    damage:
        a_damaged_task_is_shown_as_failed,
        events_before_the_damage_can_be_read,
        a_damaged_task_can_be_settled,
        a_damaged_inbox_stops_no_start;
};

/// Runs every case against the stores that `open` makes in empty folders.
pub fn check(open: impl Fn(&Path) -> Box<dyn Store>) {
    report(CASES.iter().map(|(name, case)| {
        let verdict = attempt(|folder| {
            let store = open(folder);
            block_on(case(store.as_ref()));
        });
        (*name, verdict)
    }));
}

/// Runs the cases about webhooks and their deliveries.
pub fn check_webhooks<S: Store + Outbox>(open: impl Fn(&Path) -> S) {
    report(WEBHOOKS.iter().map(|(name, case)| {
        let verdict = attempt(|folder| {
            let store = open(folder);
            block_on(case((&store, &store)));
        });
        (*name, verdict)
    }));
}

/// Runs the cases about the audit log.
pub fn check_audit<S: Store + AuditLog>(open: impl Fn(&Path) -> S) {
    report(AUDIT.iter().map(|(name, case)| {
        let verdict = attempt(|folder| {
            let store = open(folder);
            block_on(case((&store, &store)));
        });
        (*name, verdict)
    }));
}

/// Runs those that close the log and open it again.
pub fn check_audit_reopening(open: impl Fn(&Path) -> Box<dyn AuditLog>) {
    report(AUDIT_REOPENING.iter().map(|(name, case)| {
        let verdict = attempt(|folder| block_on(case(&|| open(folder))));
        (*name, verdict)
    }));
}

/// Runs the cases that close a store and open it again.
pub fn check_reopening(open: impl Fn(&Path) -> Box<dyn Store>) {
    report(REOPENING.iter().map(|(name, case)| {
        let verdict = attempt(|folder| block_on(case(&|| open(folder))));
        (*name, verdict)
    }));
}

/// Runs the cases about tasks whose rows are damaged; `spoil` knows how this store can be harmed.
pub fn check_damage<S: Store>(open: impl Fn(&Path) -> S, spoil: impl Fn(&S, &Path, TaskNo, Spoiled)) {
    report(DAMAGE.iter().map(|(name, case)| {
        let verdict = attempt(|folder| {
            let store = open(folder);
            block_on(case((&store, &|no, spoiled| spoil(&store, folder, no, spoiled))));
        });
        (*name, verdict)
    }));
}

/// Runs a case on a thread that belongs to a runtime of its own.
fn attempt(case: impl FnOnce(&Path)) -> Result<(), ()> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let _entered = runtime.enter();
    catch_unwind(AssertUnwindSafe(|| case(folder.path()))).map_err(drop)
}

/// Waits for a future in the runtime of the case. A store that can only be opened asynchronously is opened with this, also in
/// the middle of a case.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::task::block_in_place(|| Handle::current().block_on(future))
}

/// Fails once, after all cases have run, with the names of those that failed.
fn report(verdicts: impl Iterator<Item = (&'static str, Result<(), ()>)>) {
    let failed: Vec<&str> = verdicts.filter(|(_, verdict)| verdict.is_err()).map(|(name, _)| name).collect();
    assert!(failed.is_empty(), "failed cases: {}", failed.join(", "));
}

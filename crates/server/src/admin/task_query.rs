//! Which tasks an operator asks for, from the query of the call.

use std::time::Duration;

use sabir_engine::{TaskFilter, TaskNo};
use sabir_model::{AgentId, ContextId, Cursor, Owner, State, TaskId, Timestamp};
use sabir_wire::{excerpt, query_parameters, query_value};

use super::{AdminRefusal, DEFAULT_LIMIT, limit_number};

/// A task at work that stores nothing for so long may be stuck, unless the call says otherwise.
const DEFAULT_IDLE: Duration = Duration::from_secs(300);
const LONGEST_IDLE: u64 = 365 * 24 * 3600;
/// So many tasks can be named by their numbers in one cancel.
const MAX_NUMBERS: usize = 200;

/// What a call may say of the tasks that it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    List,
    Cancel,
}

impl Purpose {
    fn known(self) -> &'static str {
        match self {
            Purpose::List => "state, idle, agent, context, owner, tenant, since, id, number, limit, after",
            Purpose::Cancel => "state, idle, agent, context, owner, tenant, since, id, number, all",
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct TaskQuery {
    pub(super) filter: TaskFilter,
    pub(super) from: Option<Cursor>,
    pub(super) limit: usize,
}

/// A value of `state`.
enum StateWord {
    States(Vec<State>),
    Stuck,
}

impl TaskQuery {
    pub(super) fn parse(query: Option<&str>, purpose: Purpose) -> Result<Self, AdminRefusal> {
        let mut filter = TaskFilter::default();
        let (mut idle, mut from, mut limit, mut all, mut is_stuck) = (None, None, None, None, false);
        let (mut owner, mut tenant, mut states, mut numbers) = (None, None, Vec::new(), Vec::new());
        for (name, value) in query_parameters(query) {
            let value = query_value(value)
                .ok_or_else(|| AdminRefusal::invalid(format!("the value of {} is not encoded well", excerpt(name))))?;
            let is_first = match (name, purpose) {
                ("state", _) => {
                    match state_word(&value)? {
                        StateWord::States(named) => states.extend(named),
                        StateWord::Stuck => is_stuck = true,
                    }
                    true
                }
                ("idle", _) => idle.replace(idle_time(&value)?).is_none(),
                ("agent", _) => filter.agent.replace(id(name, &value, |text| AgentId::parse(text))?).is_none(),
                ("context", _) => filter.context.replace(id(name, &value, |text| ContextId::parse(text))?).is_none(),
                ("id", Purpose::List) => {
                    let prefix = id(name, &value, |text| TaskId::parse(text))?;
                    filter.id_prefix.replace(prefix).is_none()
                }
                ("id", Purpose::Cancel) => filter.id.replace(id(name, &value, |text| TaskId::parse(text))?).is_none(),
                ("number", _) => {
                    numbers.push(number(&value)?);
                    purpose == Purpose::Cancel || numbers.len() == 1
                }
                ("owner", _) => owner.replace(value.into_owned()).is_none(),
                ("tenant", _) => tenant.replace(value.into_owned()).is_none(),
                ("since", _) => filter.since.replace(time(&value)?).is_none(),
                ("limit", Purpose::List) => limit.replace(limit_number(&value)?).is_none(),
                ("after", Purpose::List) => from.replace(cursor(&value)?).is_none(),
                ("all", Purpose::Cancel) => all.replace(yes(&value)?).is_none(),
                _ => {
                    let (name, known) = (excerpt(name), purpose.known());
                    return Err(AdminRefusal::invalid(format!("there is no parameter {name}; known: {known}")));
                }
            };
            if !is_first {
                return Err(AdminRefusal::invalid(format!("{name} is given twice")));
            }
        }
        filter.owner = owner_of(owner, tenant)?;
        filter.numbers = different(numbers)?;
        match (is_stuck, states.is_empty()) {
            (true, true) => filter.silent_for = Some(idle.take().unwrap_or(DEFAULT_IDLE)),
            (true, false) => return Err(AdminRefusal::invalid("state=stuck cannot be combined with other states")),
            (false, true) => {}
            (false, false) => filter.states = Some(states),
        }
        if idle.is_some() {
            return Err(AdminRefusal::invalid("idle is for state=stuck"));
        }
        if purpose == Purpose::Cancel {
            check_cancel(&filter, all.is_some())?;
        }
        Ok(Self { filter, from, limit: limit.unwrap_or(DEFAULT_LIMIT) })
    }
}

/// Whoever forgets the filter must not cancel everything.
fn check_cancel(filter: &TaskFilter, all: bool) -> Result<(), AdminRefusal> {
    let terminal = filter.states.iter().flatten().find(|state| state.is_terminal());
    if let Some(state) = terminal {
        let name = state.name();
        return Err(AdminRefusal::invalid(format!("state={name} is final, and such tasks cannot be canceled")));
    }
    match (*filter == TaskFilter::default(), all) {
        (true, false) => Err(AdminRefusal::invalid(
            "a filter is required: state, agent, context, owner, since, id or number; all=true cancels every open task",
        )),
        (false, true) => Err(AdminRefusal::invalid("all=true cannot be combined with a filter")),
        _ => Ok(()),
    }
}

fn state_word(value: &str) -> Result<StateWord, AdminRefusal> {
    let that = |is: fn(State) -> bool| StateWord::States(State::ALL.into_iter().filter(|state| is(*state)).collect());
    Ok(match value {
        "open" => that(|state| !state.is_terminal()),
        "waiting" => that(State::is_waiting),
        "stuck" => StateWord::Stuck,
        name => match State::ALL.into_iter().find(|state| state.name() == name) {
            Some(state) => StateWord::States(vec![state]),
            None => {
                let names = State::ALL.map(State::name).join(", ");
                return Err(AdminRefusal::invalid(format!("state must be one of {names}, open, waiting, stuck")));
            }
        },
    })
}

fn id<T>(
    name: &str,
    value: &str,
    parse: impl FnOnce(&str) -> Result<T, sabir_model::InvalidId>,
) -> Result<T, AdminRefusal> {
    parse(value).map_err(|error| AdminRefusal::invalid(format!("{name} {error}")))
}

fn idle_time(value: &str) -> Result<Duration, AdminRefusal> {
    super::whole_number(value)
        .filter(|seconds| (1..=LONGEST_IDLE).contains(seconds))
        .map(Duration::from_secs)
        .ok_or_else(|| AdminRefusal::invalid("idle must be a number of seconds, such as 300"))
}

/// Which of the tasks with one id is meant: the only parameter of a call that is for one task.
pub(super) fn number_alone(query: Option<&str>) -> Result<Option<TaskNo>, AdminRefusal> {
    let mut found = None;
    for (name, value) in query_parameters(query) {
        if name != "number" {
            let name = excerpt(name);
            return Err(AdminRefusal::invalid(format!("there is no parameter {name}; known: number")));
        }
        if found.replace(number(value)?).is_some() {
            return Err(AdminRefusal::invalid("number is given twice"));
        }
    }
    Ok(found)
}

fn number(value: &str) -> Result<TaskNo, AdminRefusal> {
    super::whole_number(value)
        .map(TaskNo)
        .ok_or_else(|| AdminRefusal::invalid("number must be the number of a task, such as 17"))
}

fn different(mut numbers: Vec<TaskNo>) -> Result<Option<Vec<TaskNo>>, AdminRefusal> {
    numbers.sort_unstable();
    numbers.dedup();
    match numbers.len() {
        0 => Ok(None),
        1..=MAX_NUMBERS => Ok(Some(numbers)),
        _ => Err(AdminRefusal::invalid(format!("number can be given {MAX_NUMBERS} times at most"))),
    }
}

fn owner_of(subject: Option<String>, tenant: Option<String>) -> Result<Option<Owner>, AdminRefusal> {
    match (subject.as_deref(), tenant) {
        (None, None) => Ok(None),
        (None | Some(""), _) => Err(AdminRefusal::invalid("owner must be a subject such as token:alice, or anonymous")),
        (Some("anonymous"), None) => Ok(Some(Owner::anonymous())),
        (Some(subject), tenant) => Ok(Some(Owner::new(&tenant.unwrap_or_default(), subject))),
    }
}

fn time(value: &str) -> Result<Timestamp, AdminRefusal> {
    Timestamp::parse(value).ok_or_else(|| AdminRefusal::invalid("since must be a time such as 2026-05-01T12:00:00Z"))
}

fn cursor(value: &str) -> Result<Cursor, AdminRefusal> {
    Cursor::parse(value)
        .filter(|cursor| cursor.number.is_some())
        .ok_or_else(|| AdminRefusal::invalid("after must be what the page before has as after"))
}

fn yes(value: &str) -> Result<(), AdminRefusal> {
    if value == "true" { Ok(()) } else { Err(AdminRefusal::invalid("all must be true, or left out")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(query: &str, purpose: Purpose) -> String {
        match TaskQuery::parse(Some(query), purpose) {
            Ok(TaskQuery { filter, from, limit }) => {
                let TaskFilter { states, silent_for, owner, agent, context, since, id, id_prefix, numbers } = filter;
                let mut words = Vec::new();
                words.extend(states.map(|states| states.into_iter().map(State::name).collect::<Vec<_>>().join("+")));
                words.extend(silent_for.map(|time| format!("silent {time:?}")));
                words.extend(owner.map(|owner| format!("of {owner}")));
                words.extend(agent.map(|agent| format!("at {agent}")));
                words.extend(context.map(|context| format!("in {context}")));
                words.extend(since.map(|since| format!("since {}", since.as_millis())));
                words.extend(id.map(|id| format!("named {id}")));
                words.extend(id_prefix.map(|prefix| format!("like {prefix}")));
                words.extend(numbers.map(|numbers| format!("number {numbers:?}")));
                words.extend(from.map(|from| format!("from {}", from.task)));
                words.push(limit.to_string());
                words.join(" ")
            }
            Err(AdminRefusal::Problem { detail, .. }) => detail,
            Err(_) => "another refusal".to_owned(),
        }
    }

    #[test]
    fn which_tasks_are_listed() {
        for (query, expected) in [
            ("", "100"),
            ("state=working&state=failed&limit=5", "working+failed 5"),
            ("state=open", "submitted+working+input-required+auth-required 100"),
            ("state=waiting", "input-required+auth-required 100"),
            ("state=stuck", "silent 300s 100"),
            ("state=stuck&idle=60&agent=coder", "silent 60s at coder 100"),
            ("owner=token%3Aalice&context=c%201&id=0198", "of token:alice in c 1 like 0198 100"),
            ("owner=token:a&tenant=acme", "of token:a@acme 100"),
            ("owner=anonymous&since=1970-01-01T00:00:01Z", "of anonymous since 1000 100"),
            ("after=3e8.7431.6563686f.7", "from t1 100"),
            ("number=7&state=open", "submitted+working+input-required+auth-required number [TaskNo(7)] 100"),
            ("number=7&number=8", "number is given twice"),
            (
                "state=done",
                "state must be one of submitted, working, input-required, auth-required, completed, failed, canceled, rejected, open, waiting, stuck",
            ),
            ("state=stuck&state=failed", "state=stuck cannot be combined with other states"),
            ("idle=60", "idle is for state=stuck"),
            ("state=stuck&idle=0", "idle must be a number of seconds, such as 300"),
            ("idle=5m", "idle must be a number of seconds, such as 300"),
            ("agent=", "agent must not be empty"),
            ("id=a%1bb", "id must not contain control characters"),
            ("owner=", "owner must be a subject such as token:alice, or anonymous"),
            ("tenant=acme", "owner must be a subject such as token:alice, or anonymous"),
            ("since=yesterday", "since must be a time such as 2026-05-01T12:00:00Z"),
            ("after=7", "after must be what the page before has as after"),
            ("limit=1001", "limit must be between 1 and 1000"),
            ("agent=a&agent=a", "agent is given twice"),
            ("context=%zz", "the value of context is not encoded well"),
            (
                "all=true",
                "there is no parameter all; known: state, idle, agent, context, owner, tenant, since, id, number, limit, after",
            ),
        ] {
            assert_eq!(told(query, Purpose::List), expected, "{query}");
        }
    }

    #[test]
    fn a_cancel_names_what_it_is_for() {
        for (query, expected) in [
            (
                "",
                "a filter is required: state, agent, context, owner, since, id or number; all=true cancels every open task",
            ),
            ("id=7", "named 7 100"),
            ("id=task-1&number=7", "named task-1 number [TaskNo(7)] 100"),
            ("number=9&number=7&number=9", "number [TaskNo(7), TaskNo(9)] 100"),
            ("number=07", "number must be the number of a task, such as 17"),
            ("number=-7", "number must be the number of a task, such as 17"),
            ("number=9223372036854775808", "number must be the number of a task, such as 17"),
            ("all=true&number=7", "all=true cannot be combined with a filter"),
            ("all=true", "100"),
            ("all=yes", "all must be true, or left out"),
            ("all=true&agent=a", "all=true cannot be combined with a filter"),
            ("agent=a", "at a 100"),
            ("state=open", "submitted+working+input-required+auth-required 100"),
            ("state=completed", "state=completed is final, and such tasks cannot be canceled"),
            (
                "limit=5",
                "there is no parameter limit; known: state, idle, agent, context, owner, tenant, since, id, number, all",
            ),
        ] {
            assert_eq!(told(query, Purpose::Cancel), expected, "{query}");
        }
        let numbers = |count: u64| (0..count).map(|number| format!("number={number}&")).collect::<String>();
        assert!(told(&numbers(200), Purpose::Cancel).starts_with("number [TaskNo(0), "));
        assert_eq!(told(&numbers(201), Purpose::Cancel), "number can be given 200 times at most");
    }

    #[test]
    fn one_task_of_an_id_is_named_by_its_number() {
        for (query, expected) in [
            (None, "None"),
            (Some("number=7"), "Some(TaskNo(7))"),
            (Some("number="), "number must be the number of a task, such as 17"),
            (Some("number=7&number=7"), "number is given twice"),
            (Some("no=7"), "there is no parameter no; known: number"),
        ] {
            let shown = match number_alone(query) {
                Ok(number) => format!("{number:?}"),
                Err(AdminRefusal::Problem { detail, .. }) => detail,
                Err(_) => "another refusal".to_owned(),
            };
            assert_eq!(shown, expected, "{query:?}");
        }
    }
}

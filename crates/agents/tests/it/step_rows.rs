//! The steps of an adapter as readable rows.

use std::fmt::Write;

use sabir_agents::adapter::{Adapter, Exit, Step};
use sabir_agents::update::Update;

/// One row per step. Consecutive pieces of text are joined, with their number.
pub fn read_output(adapter: &mut dyn Adapter, output: &str, exit: Exit) -> String {
    let mut steps: Vec<Step> = output.lines().flat_map(|line| adapter.on_line(line)).collect();
    let is_over = steps.iter().any(is_end);
    match adapter.on_exit(&exit) {
        Some(update) if !is_over => steps.push(Step::Report(update)),
        Some(update) => panic!("the turn was over, and then {update:?}"),
        None => {}
    }
    assert!(steps.iter().filter(|step| is_end(step)).count() <= 1, "a turn ends once: {steps:?}");
    rows(&steps)
}

pub fn rows(steps: &[Step]) -> String {
    let mut rows = String::new();
    let mut rest = steps;
    while let Some(step) = rest.first() {
        let pieces = rest
            .iter()
            .take_while(|next| piece(next).is_some_and(|(kind, _)| piece(step).is_some_and(|(same, _)| kind == same)))
            .count();
        let (run, behind) = rest.split_at(pieces.max(1));
        rest = behind;
        match piece(step) {
            Some((kind, _)) => {
                let text: String = run.iter().filter_map(piece).map(|(_, text)| text).collect();
                let count = if pieces > 1 { format!(" in {pieces} pieces") } else { String::new() };
                writeln!(rows, "{kind}{count} {text:?}").unwrap();
            }
            None => writeln!(rows, "{}", row(step)).unwrap(),
        }
    }
    rows
}

fn row(step: &Step) -> String {
    let optional = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    match step {
        Step::Write(line) => format!("write {line:?}"),
        Step::CloseInput => "close input".to_owned(),
        Step::Withdraw(id) => format!("withdraw {id}"),
        Step::Ask(question) => {
            let choices: Vec<String> =
                question.choices.iter().map(|choice| format!("{} {:?}", choice.id, choice.kind)).collect();
            format!("ask {} {:?} [{}]", question.id, question.text, choices.join(", "))
        }
        Step::Report(update) => match update {
            Update::Init { session, model } => format!("init {} {}", optional(session), optional(model)),
            Update::Text(_) | Update::Thought(_) => unreachable!("pieces are put together"),
            Update::ToolUse { id, name, input } => {
                format!("tool {id} {name} {}", input.as_ref().map_or("-", |input| input.as_str()))
            }
            Update::ToolResult { id, name, output, is_error } => {
                let outcome = if *is_error { "error" } else { "ok" };
                format!("result {id} {} {outcome} {output:?}", optional(name))
            }
            Update::Progress(words) => format!("progress {words:?}"),
            Update::Usage(spent) => {
                let cost = spent.cost.map_or(String::new(), |cost| format!(" ${cost:.6}"));
                format!("spent {} {}{cost}", spent.input_tokens, spent.output_tokens)
            }
            Update::File(path) => format!("file {path}"),
            Update::NotUnderstood(line) => format!("not understood {line:?}"),
            Update::SessionGone => "session gone".to_owned(),
            Update::Done { summary } => {
                format!("done {}", summary.as_ref().map_or("-".to_owned(), |summary| format!("{summary:?}")))
            }
            Update::Failed(words) => format!("failed {words:?}"),
            Update::Interrupted => "interrupted".to_owned(),
        },
    }
}

fn piece(step: &Step) -> Option<(&'static str, &str)> {
    match step {
        Step::Report(Update::Text(text)) => Some(("text", text)),
        Step::Report(Update::Thought(text)) => Some(("thought", text)),
        _ => None,
    }
}

fn is_end(step: &Step) -> bool {
    matches!(step, Step::Report(Update::Done { .. } | Update::Failed(_) | Update::Interrupted))
}

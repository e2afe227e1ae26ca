//! What `--help` says below the flags of the commands that talk to an agent.

use crate::exit::Exit;

/// Below the flags of a command: its own words, which server it asks, and the exit codes.
fn help(own: &str) -> String {
    let server = "The first word is the server if it is a URL. A Sabir's agents have URLs of their own (URL/agents/ID). Without a
server it is the local one: the one that runs with the store of the configuration here. On a terminal text is
printed, in a pipe JSON as A2A 1.0 has it, whatever version the server speaks; an error is then the last line,
{\"error\":{\"code\",\"message\",\"hint\",\"a2aCode\"}}.";
    format!("{own}\n\n{server}\n\n{}", Exit::help())
}

pub fn send_help() -> String {
    help(
        "Examples:
  sabir send hello
  sabir send https://agents.example.com 'What does main.py do?'
  git diff | sabir send -
  sabir send 'Review this' --file report.pdf --output ./answer
  sabir send 'Now shorter' --context-id 0199a6c1-5d0e-7000-8000-000000000000
  sabir send --async 'Tidy the imports' | jq -r .task.id
  sabir send --a2a-version 0.3 --transport jsonrpc http://127.0.0.1:41242 hello

It waits until the task ends or asks, and prints what the agent makes as it comes. On a terminal questions are
answered at the prompt, and Ctrl-C asks whether to cancel the task or to detach from it. In a pipe each event is one
line ({\"statusUpdate\"}, {\"artifactUpdate\"}), and the last line is the whole {\"task\"}, or the {\"message\"} of an
agent that answers without a task.",
    )
}

pub fn answer_help() -> String {
    help(
        "Examples:
  sabir answer 0199a6c1-5d0e-7000-8000-000000000000 yes
  sabir answer https://agents.example.com 0199a6c1-5d0e-7000-8000-000000000000 'on Friday'
  sabir answer 0199a6c1-5d0e-7000-8000-000000000000 2

It answers the question that the task waits with, and follows the task as send does. A question with choices takes the
name or the number of one; a question for permission takes yes, no, always or never, alone. Without an answer, the
question is shown and answered at the prompt. A task that does not wait is left alone, which is exit code 7.",
    )
}

pub fn watch_help() -> String {
    help(
        "Examples:
  sabir watch 0199a6c1-5d0e-7000-8000-000000000000
  sabir watch https://agents.example.com 0199a6c1-5d0e-7000-8000-000000000000 --timeout 10m

It shows what the task has made so far and what it makes from now on, like send. If the connection breaks, it is opened
again, and nothing is shown twice.",
    )
}

pub fn get_help() -> String {
    help(
        "Examples:
  sabir get 0199a6c1-5d0e-7000-8000-000000000000
  sabir get 0199a6c1-5d0e-7000-8000-000000000000 --output ./answer
  sabir get 0199a6c1-5d0e-7000-8000-000000000000 | jq -r .status.state

It shows the task as it is now, and exits with 0 whatever its state is. In a pipe it is one line of JSON.",
    )
}

pub fn cancel_help() -> String {
    help(
        "Examples:
  sabir cancel 0199a6c1-5d0e-7000-8000-000000000000
  sabir cancel https://agents.example.com 0199a6c1-5d0e-7000-8000-000000000000

A task that has ended cannot be canceled, which is exit code 7. In a pipe the task is one line of JSON.",
    )
}

pub fn list_help() -> String {
    help(
        "Examples:
  sabir list
  sabir list --state input-required
  sabir list https://agents.example.com --limit 500 | jq -r .id

Only A2A 1.0 can list tasks. In a pipe each task is one line of JSON.",
    )
}

//! An agent that asks its caller, streams its answer and hands over a file: `cargo run --example writer`.

use sabir::{About, Agent, AgentFuture, Server, ServerError, Skill, Turn};

struct Writer;

impl Agent for Writer {
    fn about(&self) -> About {
        About::new("Writer", "Writes a short poem, and asks what about").modes(["text/plain"], ["text/plain"]).skill(
            Skill {
                id: "poem".into(),
                name: "Poem".into(),
                description: "Writes a poem of three lines".into(),
                tags: vec!["writing".into()],
                examples: vec!["write a poem".into()],
                ..Skill::default()
            },
        )
    }

    fn run(&self, turn: Turn) -> AgentFuture<'_> {
        Box::pin(async move {
            // The task waits here, also for days, until its caller answers.
            let subject = turn.ask_text("What shall the poem be about?").await?.text();
            let lines =
                [format!("{subject} in the morning,\n"), format!("{subject} at noon,\n"), "and then sleep.\n".into()];

            turn.file("poem.txt", "text/plain", lines.concat().as_bytes()).await;

            // Whoever streams sees each line at once; everybody else gets the whole.
            let mut reply = turn.reply_stream();
            for line in lines {
                if turn.is_cancelled() {
                    break;
                }
                reply.write(line).await;
            }
            reply.finish().await
        })
    }
}

#[tokio::main]
async fn main() -> Result<(), ServerError> {
    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:41242".into());
    println!("serving on {address}");
    Server::new().agent("writer", Writer).serve(address).await
}

//! An agent in a few lines: `cargo run --example echo`, then send it a message.

#[tokio::main]
async fn main() -> Result<(), sabir::ServerError> {
    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:41242".into());
    let echo = sabir::agent("Sends back what it gets", |turn| async move {
        let said = turn.message().text();
        turn.reply(format!("echo: {said}")).await
    });
    println!("serving on {address}");
    sabir::Server::new().agent("echo", echo).serve(address).await
}

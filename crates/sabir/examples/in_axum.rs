//! An agent inside an axum application, which has pages of its own: `cargo run --example in_axum`.

use axum::Router;
use axum::routing::get;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:41242".into());
    let greeter = sabir::agent("Greets people", |turn| async move { turn.reply("hello from axum").await });
    let a2a = sabir::Server::new()
        .agent("greeter", greeter)
        // The agent's card lies below this address.
        .public_url(format!("http://{address}/agent"))
        .service()
        .await?;

    let app = Router::new().route("/", get(|| async { "the application's own page" })).nest_service("/agent", a2a);
    println!("serving on {address}");
    axum::serve(tokio::net::TcpListener::bind(&address).await?, app).await?;
    Ok(())
}

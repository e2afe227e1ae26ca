//! A proxy in front of a Postgres or a pooler that can hold back notices, close connections, and count them.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader, copy};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::postgres_server::database_of;

/// The kind of a message that is a notice.
const NOTIFICATION: u8 = b'A';

pub struct Gate {
    address: SocketAddr,
    database: String,
    is_open: watch::Sender<bool>,
    /// Connections that were opened before this one are closed.
    closed_before: watch::Sender<usize>,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    all: AtomicUsize,
    open: AtomicUsize,
    most: AtomicUsize,
}

impl Gate {
    /// In front of the server of this URL. It passes no notices until `open`.
    pub async fn start(url: &str) -> Self {
        let host = url.rsplit('/').nth(1).and_then(|host| host.rsplit('@').next()).expect("a URL has a host");
        let server: SocketAddr = host.parse().expect("tests use addresses");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let address = listener.local_addr().expect("a listener has an address");
        let (is_open, opened) = watch::channel(false);
        let (closed_before, closed) = watch::channel(0);
        let counts = Arc::new(Counts::default());
        let gate =
            Self { address, database: database_of(url).to_owned(), is_open, closed_before, counts: counts.clone() };
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (opened, mut closed, counts) = (opened.clone(), closed.clone(), counts.clone());
                let number = counts.all.fetch_add(1, Ordering::SeqCst);
                counts.most.fetch_max(counts.open.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::spawn(async move {
                    tokio::select! {
                        () = pass(client, server, opened) => {}
                        _ = closed.wait_for(|before| number < *before) => {}
                    }
                    counts.open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        gate
    }

    pub fn url(&self) -> String {
        // What is encrypted has no messages.
        format!("postgres://postgres@{}/{}?sslmode=disable", self.address, self.database)
    }

    /// Passes what was held back, and all that comes.
    pub fn open(&self) {
        self.is_open.send_replace(true);
    }

    /// What was opened yet is closed.
    pub fn close_connections(&self) {
        self.closed_before.send_replace(self.counts.all.load(Ordering::SeqCst));
    }

    /// How many connections were open at once at most.
    pub fn most_connections(&self) -> usize {
        self.counts.most.load(Ordering::SeqCst)
    }
}

/// Until either side has ended.
async fn pass(client: TcpStream, server: SocketAddr, is_open: watch::Receiver<bool>) {
    let server = TcpStream::connect(server).await.expect("the server");
    let ((mut from_client, mut to_client), (from_server, mut to_server)) = (client.into_split(), server.into_split());
    tokio::select! {
        _ = copy(&mut from_client, &mut to_server) => {}
        _ = pass_messages(from_server, &mut to_client, is_open) => {}
    }
}

async fn pass_messages(
    from: OwnedReadHalf,
    to: &mut OwnedWriteHalf,
    mut is_open: watch::Receiver<bool>,
) -> std::io::Result<()> {
    let mut from = BufReader::new(from);
    loop {
        let mut message = vec![0; 5];
        from.read_exact(&mut message).await?;
        // The length counts itself.
        let length = u32::from_be_bytes(message[1..].try_into().expect("four bytes")) as usize;
        message.resize(1 + length, 0);
        from.read_exact(&mut message[5..]).await?;
        if message[0] == NOTIFICATION && is_open.wait_for(|is_open| *is_open).await.is_err() {
            return Ok(());
        }
        to.write_all(&message).await?;
    }
}

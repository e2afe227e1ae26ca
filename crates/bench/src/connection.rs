//! One connection to the server, and the requests that go over it.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::check::Wrong;
use crate::http::{Head, Incoming, Progress};
use crate::place::Place;
use crate::sse::{self, Frame};
use crate::stage::Connect;

pub struct Connection {
    socket: TcpStream,
    incoming: Incoming,
    /// The body of the reply so far, or the part of a stream that is not yet taken.
    body: Vec<u8>,
    /// How much of a stream has been handed out.
    taken: usize,
}

pub struct Reply<'a> {
    pub status: u16,
    pub body: &'a [u8],
}

impl Connect for Connection {
    async fn connect(place: &Place) -> Result<Self, Wrong> {
        Ok(Connection::open(place.address).await?)
    }
}

impl Connection {
    pub async fn open(address: SocketAddr) -> io::Result<Self> {
        let socket = TcpStream::connect(address).await?;
        socket.set_nodelay(true)?;
        Ok(Self { socket, incoming: Incoming::default(), body: vec![], taken: 0 })
    }

    /// One whose kernel keeps as little as possible of what nobody reads, so that it waits in the server.
    pub async fn open_narrow(address: SocketAddr) -> io::Result<Self> {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        socket.set_recv_buffer_size(4096)?;
        let socket = socket.connect(address).await?;
        socket.set_nodelay(true)?;
        Ok(Self { socket, incoming: Incoming::default(), body: vec![], taken: 0 })
    }

    /// Sends the request and reads the whole reply.
    pub async fn exchange(&mut self, request: &[u8]) -> Result<Reply<'_>, Wrong> {
        let head = self.begin(request).await?;
        self.rest().await?;
        Ok(Reply { status: head.status, body: &self.body })
    }

    /// Sends the request and reads the head of a stream; anything else is wrong.
    pub async fn stream(&mut self, request: &[u8]) -> Result<(), Wrong> {
        let head = self.begin(request).await?;
        if head.status == 200 && head.is_event_stream {
            return Ok(());
        }
        self.rest().await?;
        Err(Wrong::reply("no stream of events", head.status, &self.body))
    }

    /// The next frame of a stream; none after its end.
    pub async fn frame(&mut self) -> Result<Option<Frame<'_>>, Wrong> {
        loop {
            // Looked up twice on success, since the borrow checker cannot see that only one branch keeps it.
            if sse::frame(&self.body, self.taken).is_some() {
                let (frame, next) = sse::frame(&self.body, self.taken).expect("it was there");
                self.taken = next;
                return Ok(Some(frame));
            }
            if self.more().await? == Progress::Over {
                return Ok(None);
            }
        }
    }

    /// Hands over all frames that have come, waiting for some; false after the stream's end.
    pub async fn frames(&mut self, mut each: impl FnMut(Frame<'_>) -> Result<(), Wrong>) -> Result<bool, Wrong> {
        let mut progress = Progress::Wanting;
        if sse::frame(&self.body, self.taken).is_none() {
            progress = self.more().await?;
        }
        while let Some((frame, next)) = sse::frame(&self.body, self.taken) {
            each(frame)?;
            self.taken = next;
        }
        Ok(progress == Progress::Wanting)
    }

    async fn begin(&mut self, request: &[u8]) -> Result<Head, Wrong> {
        if self.incoming.has_more() {
            return Err(Wrong::Lost("the server sent more than its reply".into()));
        }
        self.incoming.next_reply();
        self.body.clear();
        self.taken = 0;
        self.socket.write_all(request).await?;
        loop {
            if let Some(head) = self.incoming.head()? {
                return Ok(head);
            }
            if self.read().await? == 0 {
                return Err(Wrong::Lost("the server closed the connection without a reply".into()));
            }
        }
    }

    async fn rest(&mut self) -> Result<(), Wrong> {
        while self.incoming.body(&mut self.body)? == Progress::Wanting {
            self.read_more().await?;
        }
        Ok(())
    }

    /// Reads what is there of a stream, waiting for something.
    async fn more(&mut self) -> Result<Progress, Wrong> {
        self.body.drain(..self.taken);
        self.taken = 0;
        let before = self.body.len();
        loop {
            let progress = self.incoming.body(&mut self.body)?;
            if progress == Progress::Over || self.body.len() > before {
                return Ok(progress);
            }
            self.read_more().await?;
        }
    }

    async fn read_more(&mut self) -> Result<(), Wrong> {
        if self.read().await? == 0 && !self.incoming.ends_here() {
            return Err(Wrong::Lost("the server closed the connection in the middle of a reply".into()));
        }
        Ok(())
    }

    async fn read(&mut self) -> io::Result<usize> {
        self.socket.read_buf(self.incoming.room()).await
    }
}

//! The socket of a connection: which protocol its client speaks, and whether the client writes and reads.
//!
//! HTTP/2 and TLS announce themselves with their first bytes. They are looked at before anything is set up, so that a
//! connection, of which there may be thousands, pays for one protocol only, and one that says nothing for none.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::connections::Connection;

/// How the preface of HTTP/2 begins; no method of HTTP/1 does.
const PREFACE: &[u8; 3] = b"PRI";
/// The first byte of TLS: a record of the handshake.
const TLS_HANDSHAKE: u8 = 0x16;
/// What the system holds of what was written and not sent yet. Without a limit it takes megabytes for each client that
/// does not read; the data on its way to the client does not count.
const UNSENT: u32 = 128 * 1024;
/// A client that vanished without a word is noticed after some of these.
const PROBE_AFTER: Duration = Duration::from_secs(60);

/// How a connection begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opening {
    /// Also what is no protocol at all.
    Http1,
    Http2,
    Tls,
}

pub(crate) struct Socket {
    stream: TcpStream,
    connection: Arc<Connection>,
    /// Bytes that were read to tell the protocol, and how many of them nobody has taken yet.
    first: [u8; PREFACE.len()],
    untaken: usize,
    is_blocked: bool,
}

impl Socket {
    pub(crate) fn new(stream: TcpStream, connection: Arc<Connection>) -> Self {
        // A stream's events are small and must not wait for each other.
        let set = stream.set_nodelay(true);
        let options = SockRef::from(&stream);
        let set = set.and_then(|()| options.set_tcp_keepalive(&TcpKeepalive::new().with_time(PROBE_AFTER)));
        #[cfg(target_os = "linux")]
        let set = set.and_then(|()| options.set_tcp_notsent_lowat(UNSENT));
        if let Err(error) = set {
            tracing::debug!(%error, "cannot set the options of a socket");
        }
        Self { stream, connection, first: [0; PREFACE.len()], untaken: 0, is_blocked: false }
    }

    /// Which protocol the client speaks. `None`: it closed the connection before that was clear.
    pub(crate) async fn opening(&mut self) -> io::Result<Option<Opening>> {
        loop {
            let seen = &self.first[..self.untaken];
            if seen.first() == Some(&TLS_HANDSHAKE) {
                return Ok(Some(Opening::Tls));
            }
            if seen != &PREFACE[..seen.len()] {
                return Ok(Some(Opening::Http1));
            }
            if seen.len() == PREFACE.len() {
                return Ok(Some(Opening::Http2));
            }
            self.stream.readable().await?;
            match self.stream.try_read(&mut self.first[self.untaken..]) {
                Ok(0) => return Ok(None),
                Ok(length) => {
                    self.untaken += length;
                    self.connection.has_read();
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn wrote(&mut self, result: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match (&result, self.is_blocked) {
            (Poll::Pending, false) => {
                self.is_blocked = true;
                self.connection.is_blocked();
            }
            (Poll::Ready(_), true) => {
                self.is_blocked = false;
                self.connection.has_written();
            }
            _ => {}
        }
        result
    }
}

impl AsyncRead for Socket {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.untaken > 0 {
            let taken = this.untaken.min(buffer.remaining());
            buffer.put_slice(&this.first[..taken]);
            this.first.copy_within(taken.., 0);
            this.untaken -= taken;
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(cx, buffer);
        if buffer.filled().len() > before {
            this.connection.has_read();
        }
        read
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.wrote(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.wrote(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

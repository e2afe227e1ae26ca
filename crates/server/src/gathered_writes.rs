//! Small writes, gathered until there is something to send them with.
//!
//! HTTP/2 writes the head of a frame, a short frame and the trailers of a response each by itself where it is not told to use
//! vectored writes, and where it is, it sends trailers after any payload of 256 bytes in a segment of their own. So a reply of gRPC
//! would take two system calls and two segments. Here HTTP/2 is not told: what it writes in small pieces is kept until it
//! flushes, or goes out together with the next large piece.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Pieces up to this size are gathered.
const SMALL: usize = 512;
/// So much is gathered at most.
const ROOM: usize = 4096;

pub(crate) struct GatheredWrites<S> {
    inner: S,
    pending: Vec<u8>,
}

impl<S> GatheredWrites<S> {
    pub(crate) fn new(inner: S) -> Self {
        Self { inner, pending: Vec::new() }
    }
}

impl<S: AsyncWrite + Unpin> GatheredWrites<S> {
    fn poll_send_pending(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.pending.is_empty() {
            let written = ready!(Pin::new(&mut self.inner).poll_write(cx, &self.pending))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.pending.drain(..written);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for GatheredWrites<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for GatheredWrites<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        if bytes.len() <= SMALL && this.pending.len() + bytes.len() <= ROOM {
            this.pending.extend_from_slice(bytes);
            return Poll::Ready(Ok(bytes.len()));
        }
        while !this.pending.is_empty() {
            let both = [IoSlice::new(&this.pending), IoSlice::new(bytes)];
            let written = ready!(Pin::new(&mut this.inner).poll_write_vectored(cx, &both))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            let of_pending = written.min(this.pending.len());
            this.pending.drain(..of_pending);
            if written > of_pending {
                return Poll::Ready(Ok(written - of_pending));
            }
        }
        Pin::new(&mut this.inner).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_send_pending(cx))?;
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_send_pending(cx))?;
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tokio::io::AsyncWriteExt;

    use super::*;

    /// Takes a few bytes at a time, and sometimes none yet.
    #[derive(Default)]
    struct Socket {
        taken: Vec<u8>,
        calls: usize,
        /// How much each call takes; 0: not now.
        takes: Vec<usize>,
    }

    impl Socket {
        fn take(&mut self, cx: &Context<'_>, pieces: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
            let most = if self.takes.is_empty() { usize::MAX } else { self.takes[self.calls % self.takes.len()] };
            self.calls += 1;
            if most == 0 {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            let all: Vec<u8> = pieces.iter().flat_map(|piece| piece.iter().copied()).take(most).collect();
            self.taken.extend_from_slice(&all);
            Poll::Ready(Ok(all.len()))
        }
    }

    impl AsyncWrite for Socket {
        fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            self.take(cx, &[IoSlice::new(bytes)])
        }

        fn poll_write_vectored(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            pieces: &[IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            self.take(cx, pieces)
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn a_short_reply_is_one_write_and_a_long_one_two() {
        for (payload, calls) in [(10, 1), (400, 1), (5000, 2)] {
            let mut writes = GatheredWrites::new(Socket::default());
            for piece in [vec![1; 9], vec![2; payload], vec![3; 20]] {
                writes.write_all(&piece).await.unwrap();
            }
            writes.flush().await.unwrap();
            assert_eq!(writes.inner.calls, calls, "{payload}");
            assert_eq!(writes.inner.taken, [vec![1; 9], vec![2; payload], vec![3; 20]].concat());
        }
    }

    proptest! {
        #[test]
        fn nothing_is_lost_however_little_the_socket_takes(
            lengths in prop::collection::vec(0usize..6000, 0..20),
            mut takes in prop::collection::vec(0usize..2000, 0..10),
            flushes: u32,
        ) {
            if takes.iter().all(|most| *most == 0) {
                takes.clear();
            }
            let mut expected = Vec::new();
            let mut writes = GatheredWrites::new(Socket { takes, ..Socket::default() });
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(async {
                for (place, length) in lengths.iter().enumerate() {
                    let piece = vec![place as u8; *length];
                    expected.extend_from_slice(&piece);
                    writes.write_all(&piece).await.unwrap();
                    if flushes >> (place % 32) & 1 == 1 {
                        writes.flush().await.unwrap();
                    }
                    assert!(writes.pending.len() <= ROOM);
                }
                writes.shutdown().await.unwrap();
            });
            prop_assert_eq!(writes.inner.taken, expected);
        }
    }
}

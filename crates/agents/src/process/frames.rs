//! The messages between Sabir and a guard on their socket.
//!
//! An order is a letter, a length of four bytes and that many bytes; an event is a letter and a number of four bytes. Both
//! ends are the same binary, so the format has no version.

use std::io::{self, Read};

use super::deadline::Deadline;
use crate::adapter::Exit;

/// The longest piece of input in one order.
pub(super) const PIECE: usize = 64 * 1024;

/// From Sabir to the guard.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// For the program's standard input.
    Input(Vec<u8>),
    CloseInput,
    /// SIGTERM to the program's group.
    Terminate,
    /// SIGKILL to everything.
    Kill,
    /// Sets how the guard ends the program if Sabir is gone.
    OnSabirExit(Ending),
    /// Replaces the deadline: after it the guard pauses the program.
    RunUntil(Deadline),
}

/// How a guard ends its program when Sabir is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// SIGTERM, and after a while SIGKILL to the processes that are left: the program can clean up.
    Graceful,
    /// SIGKILL at once, before the program notices anything: what it has stored of its turn stays as it is.
    Kill,
}

impl Order {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let nanoseconds;
        let (letter, bytes): (u8, &[u8]) = match self {
            Order::Input(bytes) => (b'i', bytes),
            Order::CloseInput => (b'c', &[]),
            Order::Terminate => (b't', &[]),
            Order::Kill => (b'k', &[]),
            Order::OnSabirExit(Ending::Graceful) => (b'a', &[]),
            Order::OnSabirExit(Ending::Kill) => (b'o', &[]),
            Order::RunUntil(deadline) => {
                nanoseconds = deadline.as_nanoseconds().to_le_bytes();
                (b'u', &nanoseconds)
            }
        };
        let length = u32::try_from(bytes.len()).expect("input is cut into pieces");
        out.push(letter);
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(bytes);
    }

    /// Waits for the next order. An error, including the end of the stream, means that none will follow.
    pub(super) fn read(from: &mut impl Read) -> io::Result<Self> {
        let mut head = [0; 5];
        from.read_exact(&mut head)?;
        let length = u32::from_le_bytes([head[1], head[2], head[3], head[4]]) as usize;
        match (head[0], length) {
            (b'i', 0..=PIECE) => {
                let mut bytes = vec![0; length];
                from.read_exact(&mut bytes)?;
                Ok(Order::Input(bytes))
            }
            (b'c', 0) => Ok(Order::CloseInput),
            (b't', 0) => Ok(Order::Terminate),
            (b'k', 0) => Ok(Order::Kill),
            (b'a', 0) => Ok(Order::OnSabirExit(Ending::Graceful)),
            (b'o', 0) => Ok(Order::OnSabirExit(Ending::Kill)),
            (b'u', 8) => {
                let mut nanoseconds = [0; 8];
                from.read_exact(&mut nanoseconds)?;
                Ok(Order::RunUntil(Deadline::from_nanoseconds(u64::from_le_bytes(nanoseconds))))
            }
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

/// From the guard to Sabir.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GuardEvent {
    /// The program runs with this process id, which is also its process group.
    Started(i32),
    /// The program could not be started; this is the error number of the operating system.
    NotStarted(i32),
    /// This many bytes were written to the program's input; Sabir may send as many more.
    Fed(u32),
    /// The program will never read again.
    InputClosed,
    /// The program and all that it started are gone.
    Ended(Exit),
}

impl GuardEvent {
    pub(super) const LENGTH: usize = 5;

    pub(super) fn bytes(self) -> [u8; Self::LENGTH] {
        let (letter, number) = match self {
            GuardEvent::Started(process) => (b's', process.to_le_bytes()),
            GuardEvent::NotStarted(reason) => (b'n', reason.to_le_bytes()),
            GuardEvent::Fed(count) => (b'f', count.to_le_bytes()),
            GuardEvent::InputClosed => (b'c', [0; 4]),
            GuardEvent::Ended(Exit::Code(code)) => (b'e', code.to_le_bytes()),
            GuardEvent::Ended(Exit::Signal(signal)) => (b'k', signal.to_le_bytes()),
        };
        [letter, number[0], number[1], number[2], number[3]]
    }

    pub(super) fn parse(bytes: [u8; Self::LENGTH]) -> Option<Self> {
        let [letter, number @ ..] = bytes;
        let signed = i32::from_le_bytes(number);
        Some(match letter {
            b's' => GuardEvent::Started(signed),
            b'n' => GuardEvent::NotStarted(signed),
            b'f' => GuardEvent::Fed(u32::from_le_bytes(number)),
            b'c' => GuardEvent::InputClosed,
            b'e' => GuardEvent::Ended(Exit::Code(signed)),
            b'k' => GuardEvent::Ended(Exit::Signal(signed)),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Deadline, Ending, GuardEvent, Order};
    use crate::adapter::Exit;

    #[test]
    fn orders_and_events_come_back_as_they_were() {
        for order in [
            Order::Input(b"hello\n".to_vec()),
            Order::CloseInput,
            Order::Terminate,
            Order::Kill,
            Order::OnSabirExit(Ending::Graceful),
            Order::OnSabirExit(Ending::Kill),
            Order::RunUntil(Deadline::from_nanoseconds(1_234_567_890_123)),
            Order::RunUntil(Deadline::NEVER),
        ] {
            let mut bytes = Vec::new();
            order.write(&mut bytes);
            assert_eq!(Order::read(&mut bytes.as_slice()).unwrap(), order);
            bytes.pop();
            assert!(Order::read(&mut bytes.as_slice()).is_err(), "{order:?} cut short");
        }
        for event in [
            GuardEvent::Started(4_000_000),
            GuardEvent::NotStarted(2),
            GuardEvent::Fed(65_536),
            GuardEvent::InputClosed,
            GuardEvent::Ended(Exit::Code(3)),
            GuardEvent::Ended(Exit::Signal(9)),
        ] {
            assert_eq!(GuardEvent::parse(event.bytes()), Some(event));
        }
    }

    #[test]
    fn nonsense_is_no_order() {
        for bytes in [&b"x\0\0\0\0"[..], b"t\x01\0\0\0a", b"i\xff\xff\xff\xff", b"u\x04\0\0\0abcd"] {
            assert!(Order::read(&mut &*bytes).is_err(), "{bytes:?}");
        }
        assert_eq!(GuardEvent::parse(*b"x\0\0\0\0"), None);
    }
}

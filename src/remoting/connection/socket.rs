//! What is asked of a connected socket.
//!
//! A caller that waits for its reply blocks in the read itself where the system has a way to say so for
//! one read and not for another: to wait for input first would be one call to the system more. So the
//! socket blocks, and whoever must not be blocked says it each time. Elsewhere it never blocks, and
//! callers do not read.

use std::io;
use std::time::Duration;

use mio::net::TcpStream;

#[cfg(unix)]
pub(super) use unix::{make_ready, receive, send, wait_and_receive};

#[cfg(unix)]
mod unix {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::io::{Errno, ioctl_fionbio};
    use rustix::net::sockopt::{Timeout, set_socket_timeout};
    use rustix::net::{RecvFlags, SendFlags, recv};

    use super::*;

    /// How long a read may block. Whoever has less time left waits for input first.
    const LONGEST_READ: Duration = Duration::from_millis(250);

    /// Prepares a socket that is connected and has not been read yet.
    pub(in super::super) fn make_ready(stream: &TcpStream) -> io::Result<()> {
        set_socket_timeout(stream, Timeout::Recv, Some(LONGEST_READ))?;
        Ok(ioctl_fionbio(stream, false)?)
    }

    /// Reads what is there.
    pub(in super::super) fn receive(stream: &TcpStream, place: &mut [u8]) -> io::Result<usize> {
        loop {
            match recv(stream, &mut *place, RecvFlags::DONTWAIT) {
                Ok((length, _)) => return Ok(length),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Reads once there is something, or the end. May give up before `left` has passed, but not later.
    ///
    /// # Errors
    /// `WouldBlock` if there was nothing in time.
    pub(in super::super) fn wait_and_receive(
        stream: &TcpStream,
        place: &mut [u8],
        left: Duration,
    ) -> io::Result<usize> {
        if left < LONGEST_READ {
            let timeout = Timespec::try_from(left).map_err(io::Error::other)?;
            return match poll(&mut [PollFd::new(stream, PollFlags::IN)], Some(&timeout)) {
                Ok(0) | Err(Errno::INTR) => Err(io::ErrorKind::WouldBlock.into()),
                Ok(_) => receive(stream, place),
                Err(error) => Err(error.into()),
            };
        }
        match recv(stream, place, RecvFlags::empty()) {
            Ok((length, _)) => Ok(length),
            Err(Errno::INTR) => Err(io::ErrorKind::WouldBlock.into()),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes as much as the socket takes at once. A peer that is gone is an error, not a signal.
    pub(in super::super) fn send(stream: &TcpStream, bytes: &[u8]) -> io::Result<usize> {
        // Where there is no such flag, mio has said it of the whole socket.
        #[cfg(target_vendor = "apple")]
        let flags = SendFlags::DONTWAIT;
        #[cfg(not(target_vendor = "apple"))]
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        Ok(rustix::net::send(stream, bytes, flags)?)
    }
}

#[cfg(not(unix))]
pub(super) use elsewhere::{make_ready, receive, send, wait_and_receive};

#[cfg(not(unix))]
mod elsewhere {
    use std::io::{Read, Write};

    use super::*;

    pub(in super::super) fn make_ready(_: &TcpStream) -> io::Result<()> {
        Ok(())
    }

    pub(in super::super) fn receive(mut stream: &TcpStream, place: &mut [u8]) -> io::Result<usize> {
        loop {
            match stream.read(place) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                outcome => return outcome,
            }
        }
    }

    pub(in super::super) fn wait_and_receive(
        _: &TcpStream,
        _: &mut [u8],
        _: Duration,
    ) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(in super::super) fn send(mut stream: &TcpStream, bytes: &[u8]) -> io::Result<usize> {
        stream.write(bytes)
    }
}

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Where a message is stored: a broker's address and the commit-log offset, as the hexadecimal id
/// that brokers hand out (Java `MessageDecoder#createMessageId`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OffsetMessageId {
    /// The broker's address.
    pub store_host: SocketAddr,
    /// The offset in its commit log.
    pub commit_log_offset: i64,
}

impl fmt::Display for OffsetMessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut digits = Digits::default();
        digits.put_ip(self.store_host.ip());
        digits.put(&u32::from(self.store_host.port()).to_be_bytes());
        digits.put(&self.commit_log_offset.to_be_bytes());
        digits.write(f)
    }
}

impl OffsetMessageId {
    /// Reads an id of 32 or 56 hexadecimal digits. `None` for anything else, also for a unique key
    /// whose digits name a port that cannot be.
    pub fn parse(id: &str) -> Option<Self> {
        let (ip, rest) = split_ip(id)?;
        let (port, offset) = rest.split_at_checked(8)?;
        let port = u16::try_from(u32::from_str_radix(port, 16).ok()?).ok()?;
        let offset = u64::from_str_radix(offset, 16).ok()? as i64;
        Some(Self {
            store_host: SocketAddr::new(ip, port),
            commit_log_offset: offset,
        })
    }
}

/// The parts of a message's unique key (Java `MessageClientIDSetter`); whoever sends keeps the
/// process's parts and brings the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct UniqKeyParts {
    /// An address of this machine.
    pub ip: IpAddr,
    /// The low 16 bits of the process id.
    pub process_id: u16,
    /// Any number that differs from process to process.
    pub process_hash: u32,
    /// Milliseconds since the month began.
    pub elapsed_millis: u32,
    /// Counts messages, wrapping.
    pub counter: u16,
}

impl fmt::Display for UniqKeyParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut digits = Digits::default();
        digits.put_ip(self.ip);
        digits.put(&self.process_id.to_be_bytes());
        digits.put(&self.process_hash.to_be_bytes());
        digits.put(&self.elapsed_millis.to_be_bytes());
        digits.put(&self.counter.to_be_bytes());
        digits.write(f)
    }
}

impl UniqKeyParts {
    /// Takes a unique key apart. `None` for anything but 32 or 56 hexadecimal digits; whether they
    /// are a unique key nobody can tell.
    pub fn parse(key: &str) -> Option<Self> {
        let (ip, rest) = split_ip(key)?;
        let (process_id, rest) = rest.split_at_checked(4)?;
        let (process_hash, rest) = rest.split_at_checked(8)?;
        let (elapsed_millis, counter) = rest.split_at_checked(8)?;
        Some(Self {
            ip,
            process_id: u16::from_str_radix(process_id, 16).ok()?,
            process_hash: u32::from_str_radix(process_hash, 16).ok()?,
            elapsed_millis: u32::from_str_radix(elapsed_millis, 16).ok()?,
            counter: u16::from_str_radix(counter, 16).ok()?,
        })
    }
}

/// The address that an id of 32 or 56 hexadecimal digits begins with, and the other digits.
fn split_ip(id: &str) -> Option<(IpAddr, &str)> {
    let ip_digits = match id.len() {
        32 => 8,
        56 => 32,
        _ => return None,
    };
    if !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let (ip, rest) = id.split_at_checked(ip_digits)?;
    let ip = if ip_digits == 8 {
        Ipv4Addr::from(u32::from_str_radix(ip, 16).ok()?).into()
    } else {
        Ipv6Addr::from(u128::from_str_radix(ip, 16).ok()?).into()
    };
    Some((ip, rest))
}

/// The digits of an id, gathered on the stack: each message sent and received has one written.
struct Digits {
    text: [u8; MAX_DIGITS],
    length: usize,
}

/// An id with an IPv6 address: 28 bytes.
const MAX_DIGITS: usize = 56;

impl Default for Digits {
    fn default() -> Self {
        Self {
            text: [0; MAX_DIGITS],
            length: 0,
        }
    }
}

impl Digits {
    fn put(&mut self, bytes: &[u8]) {
        for nibble in bytes.iter().flat_map(|byte| [byte >> 4, byte & 0xF]) {
            if let Some(place) = self.text.get_mut(self.length) {
                *place = match nibble {
                    0..=9 => b'0'.wrapping_add(nibble),
                    _ => b'A'.wrapping_add(nibble.wrapping_sub(10)),
                };
                self.length = self.length.saturating_add(1);
            }
        }
    }

    fn put_ip(&mut self, ip: IpAddr) {
        match ip {
            IpAddr::V4(ip) => self.put(&ip.octets()),
            IpAddr::V6(ip) => self.put(&ip.octets()),
        }
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.text.get(..self.length).unwrap_or_default();
        f.write_str(std::str::from_utf8(digits).map_err(|_| fmt::Error)?)
    }
}

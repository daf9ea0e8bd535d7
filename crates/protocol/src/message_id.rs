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
        digits.put(u32::from(self.store_host.port()).to_be_bytes());
        digits.put(self.commit_log_offset.to_be_bytes());
        f.write_str(digits.text())
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
        f.write_str(self.digits().text())
    }
}

impl UniqKeyParts {
    /// The key's 32 hexadecimal digits, or 56 with an IPv6 address: what [`Display`](fmt::Display)
    /// writes, for who makes a key for each message.
    pub fn to_text(&self) -> String {
        self.digits().text().to_owned()
    }

    fn digits(&self) -> Digits {
        let mut digits = Digits::default();
        digits.put_ip(self.ip);
        digits.put(self.process_id.to_be_bytes());
        digits.put(self.process_hash.to_be_bytes());
        digits.put(self.elapsed_millis.to_be_bytes());
        digits.put(self.counter.to_be_bytes());
        digits
    }

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
    pairs: [[u8; 2]; MAX_PAIRS],
    length: usize,
}

/// The bytes of an id with an IPv6 address.
const MAX_PAIRS: usize = 28;

/// The two digits of each byte.
static PAIRS: [[u8; 2]; 256] = {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let mut pairs = [[0; 2]; 256];
    let mut byte = 0;
    while byte < 256 {
        pairs[byte] = [DIGITS[byte >> 4], DIGITS[byte & 0xF]];
        byte += 1;
    }
    pairs
};

impl Default for Digits {
    fn default() -> Self {
        Self {
            pairs: [*b"00"; MAX_PAIRS],
            length: 0,
        }
    }
}

impl Digits {
    fn put<const N: usize>(&mut self, bytes: [u8; N]) {
        let places = self.pairs.get_mut(self.length..).unwrap_or_default();
        for (place, byte) in places.iter_mut().zip(bytes) {
            *place = PAIRS.get(usize::from(byte)).copied().unwrap_or_default();
        }
        self.length = self.length.saturating_add(N);
    }

    fn put_ip(&mut self, ip: IpAddr) {
        match ip {
            IpAddr::V4(ip) => self.put(ip.octets()),
            IpAddr::V6(ip) => self.put(ip.octets()),
        }
    }

    fn text(&self) -> &str {
        let pairs = self.pairs.get(..self.length).unwrap_or_default();
        // Digits are always UTF-8.
        std::str::from_utf8(pairs.as_flattened()).unwrap_or_default()
    }
}

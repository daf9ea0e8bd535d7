use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use bytes::{BufMut, BytesMut};

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
        let mut bytes = BytesMut::with_capacity(28);
        put_ip(&mut bytes, self.store_host.ip());
        bytes.put_u32(u32::from(self.store_host.port()));
        bytes.put_i64(self.commit_log_offset);
        write_hex(f, &bytes)
    }
}

impl OffsetMessageId {
    /// Reads an id of 32 or 56 hexadecimal digits. `None` for anything else, also for a unique key
    /// whose digits name a port that cannot be.
    pub fn parse(id: &str) -> Option<Self> {
        let digits = id.as_bytes();
        let ip_digits = match digits.len() {
            32 => 8,
            56 => 32,
            _ => return None,
        };
        if !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        let (ip, rest) = id.split_at_checked(ip_digits)?;
        let (port, offset) = rest.split_at_checked(8)?;
        let ip: IpAddr = if ip_digits == 8 {
            Ipv4Addr::from(u32::from_str_radix(ip, 16).ok()?).into()
        } else {
            Ipv6Addr::from(u128::from_str_radix(ip, 16).ok()?).into()
        };
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
        let mut bytes = BytesMut::with_capacity(28);
        put_ip(&mut bytes, self.ip);
        bytes.put_u16(self.process_id);
        bytes.put_u32(self.process_hash);
        bytes.put_u32(self.elapsed_millis);
        bytes.put_u16(self.counter);
        write_hex(f, &bytes)
    }
}

fn put_ip(bytes: &mut BytesMut, ip: IpAddr) {
    match ip {
        IpAddr::V4(ip) => bytes.put_slice(&ip.octets()),
        IpAddr::V6(ip) => bytes.put_slice(&ip.octets()),
    }
}

fn write_hex(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02X}"))
}

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
        digits.put(u32::from(self.store_host.port()));
        digits.put_long(self.commit_log_offset as u64);
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
        // The process's six bytes, and those of the time and the counter.
        digits.put(u32::from(self.process_id) << 16 | self.process_hash >> 16);
        digits.put(self.process_hash << 16 | self.elapsed_millis >> 16);
        digits.put(self.elapsed_millis << 16 | u32::from(self.counter));
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
#[derive(Default)]
struct Digits {
    eights: [[u8; 8]; MAX_EIGHTS],
    length: usize,
}

/// An id with an IPv6 address: 28 bytes.
const MAX_EIGHTS: usize = 7;

impl Digits {
    fn put(&mut self, number: u32) {
        if let Some(place) = self.eights.get_mut(self.length) {
            *place = hexadecimal(number);
            self.length = self.length.saturating_add(1);
        }
    }

    fn put_long(&mut self, number: u64) {
        self.put((number >> 32) as u32);
        self.put(number as u32);
    }

    fn put_ip(&mut self, ip: IpAddr) {
        match ip {
            IpAddr::V4(ip) => self.put(ip.to_bits()),
            IpAddr::V6(ip) => {
                self.put_long((ip.to_bits() >> 64) as u64);
                self.put_long(ip.to_bits() as u64);
            }
        }
    }

    fn text(&self) -> &str {
        let eights = self.eights.get(..self.length).unwrap_or_default();
        // Digits are always UTF-8.
        std::str::from_utf8(eights.as_flattened()).unwrap_or_default()
    }
}

/// The eight digits of a number, made all at once in the bytes of a word.
const fn hexadecimal(number: u32) -> [u8; 8] {
    const EACH: u64 = 0x0101_0101_0101_0101;
    /// What letters are away from where they would follow the digits.
    const GAP: u64 = (b'A' - b'9' - 1) as u64;
    let halves = number as u64;
    let halves = (halves | halves << 16) & 0x0000_FFFF_0000_FFFF;
    let bytes = (halves | halves << 8) & 0x00FF_00FF_00FF_00FF;
    let digits = (bytes | bytes << 4) & 0x0F0F_0F0F_0F0F_0F0F;
    let letters = (digits.wrapping_add(EACH.wrapping_mul(6)) >> 4) & EACH;
    digits
        .wrapping_add(EACH.wrapping_mul(b'0' as u64))
        .wrapping_add(letters.wrapping_mul(GAP))
        .to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_digit_is_written_in_every_place() {
        let mut number = 0x0123_4567_u32;
        for _ in 0..16 {
            number = number.wrapping_add(0x1111_1111);
            for turn in 0..8 {
                let number = number.rotate_left(4 * turn);
                let expected = format!("{number:08X}");
                assert_eq!(std::str::from_utf8(&hexadecimal(number)), Ok(&*expected));
            }
        }
    }
}

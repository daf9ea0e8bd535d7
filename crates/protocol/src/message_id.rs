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
        let port = u32::from(self.store_host.port());
        let offset = self.commit_log_offset;
        let numbers = [port, (offset >> 32) as u32, offset as u32];
        with_digits(self.store_host.ip(), numbers, |id| f.write_str(id))
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
        with_digits(self.ip, self.after_ip(), |key| f.write_str(key))
    }
}

impl UniqKeyParts {
    /// The key's 32 hexadecimal digits, or 56 with an IPv6 address: what [`Display`](fmt::Display)
    /// writes, for who makes a key for each message.
    pub fn to_text(&self) -> String {
        with_digits(self.ip, self.after_ip(), str::to_owned)
    }

    /// Puts [`to_text`](Self::to_text) behind what is there.
    pub fn append_to(&self, text: &mut String) {
        with_digits(self.ip, self.after_ip(), |digits| text.push_str(digits));
    }

    /// The twelve bytes that come after the address.
    fn after_ip(&self) -> [u32; 3] {
        [
            u32::from(self.process_id) << 16 | self.process_hash >> 16,
            self.process_hash << 16 | self.elapsed_millis >> 16,
            self.elapsed_millis << 16 | u32::from(self.counter),
        ]
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

/// An id of an address and three numbers more, shown to `show`: each message sent and received has
/// one made.
fn with_digits<R>(ip: IpAddr, [a, b, c]: [u32; 3], show: impl FnOnce(&str) -> R) -> R {
    let [a, b, c] = [a, b, c].map(hexadecimal);
    // Digits are always UTF-8.
    let text =
        |eights: &[[u8; 8]]| show(std::str::from_utf8(eights.as_flattened()).unwrap_or_default());
    match ip {
        IpAddr::V4(ip) => text(&[hexadecimal(ip.to_bits()), a, b, c]),
        IpAddr::V6(ip) => {
            let part = |shift: u32| hexadecimal((ip.to_bits() >> shift) as u32);
            text(&[part(96), part(64), part(32), part(0), a, b, c])
        }
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

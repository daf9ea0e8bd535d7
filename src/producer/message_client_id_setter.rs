//! Unique keys of messages (Java `MessageClientIDSetter`).

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::net::IpAddr;

use rocketmq_protocol::UniqKeyParts;

use crate::client_config::local_address;
use crate::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use crate::sync::{Lazy, system_time_millis};

const DAY_MILLIS: i64 = 24 * 60 * 60 * 1000;

/// What all keys of this process have in common.
struct Process {
    ip: IpAddr,
    id: u16,
    hash: u32,
}

static PROCESS: Lazy<Process> = Lazy::new(|| Process {
    ip: local_address(),
    id: std::process::id() as u16,
    hash: RandomState::new().build_hasher().finish() as u32,
});
static COUNTER: AtomicU32 = AtomicU32::new(0);
/// The month that the last key was made in: when it began and when it ends.
static MONTH_START: AtomicI64 = AtomicI64::new(0);
static MONTH_END: AtomicI64 = AtomicI64::new(0);

/// A key that no other message has: address, process and its hash, the time since the month began,
/// and a counter. Java counts the month in local time, this in UTC; nobody but the maker reads it.
pub(crate) fn create_uniq_id() -> String {
    let now = system_time_millis();
    if now >= MONTH_END.load(Ordering::Relaxed) || now < MONTH_START.load(Ordering::Relaxed) {
        let (start, end) = month_around(now);
        MONTH_START.store(start, Ordering::Relaxed);
        MONTH_END.store(end, Ordering::Relaxed);
    }
    let elapsed = now
        .saturating_sub(MONTH_START.load(Ordering::Relaxed))
        .max(0);
    UniqKeyParts {
        ip: PROCESS.ip,
        process_id: PROCESS.id,
        process_hash: PROCESS.hash,
        elapsed_millis: elapsed as u32,
        counter: COUNTER.fetch_add(1, Ordering::Relaxed) as u16,
    }
    .to_string()
}

/// When the month of a time began and ends, in milliseconds since 1970, UTC.
fn month_around(millis: i64) -> (i64, i64) {
    let mut start = 0;
    for year in 1970.. {
        for month in 0..12 {
            let end = start + days_in(year, month) * DAY_MILLIS;
            if millis < end {
                return (start, end);
            }
            start = end;
        }
    }
    (0, i64::MAX)
}

fn days_in(year: i64, month: usize) -> i64 {
    const DAYS: [i64; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    DAYS.get(month).copied().unwrap_or(31) + i64::from(leap && month == 1)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn keys_differ_and_have_javas_form() {
        let keys: HashSet<String> = (0..10_000).map(|_| create_uniq_id()).collect();
        assert_eq!(keys.len(), 10_000);
        assert!(keys.iter().all(|key| matches!(key.len(), 32 | 56)));
        assert!(
            keys.iter()
                .all(|key| key.bytes().all(|b| b.is_ascii_hexdigit()))
        );
    }

    #[test]
    fn a_month_begins_on_its_first_day() {
        const FEBRUARY_29_2024: i64 = 1_709_164_800_000;
        const FEBRUARY_1_2024: i64 = 1_706_745_600_000;
        const MARCH_1_2024: i64 = 1_709_251_200_000;
        assert_eq!(
            month_around(FEBRUARY_29_2024),
            (FEBRUARY_1_2024, MARCH_1_2024)
        );
        assert_eq!(month_around(MARCH_1_2024).0, MARCH_1_2024);
        assert_eq!(month_around(MARCH_1_2024 - 1).0, FEBRUARY_1_2024);
    }
}

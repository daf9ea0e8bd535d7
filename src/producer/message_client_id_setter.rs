//! Unique keys of messages (Java `MessageClientIDSetter`).

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::net::IpAddr;

use rocketmq_protocol::UniqKeyParts;

use crate::client_config::local_address;
use crate::sync::{Lazy, Mutex, system_time_millis};

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
static MAKER: Maker = Maker::new();

/// A key that no other message has: address, process and its hash, the time since the month began,
/// and a counter. Java counts the month in local time, this in UTC; nobody but the maker reads it.
pub(crate) fn create_uniq_id() -> String {
    next_parts().to_text()
}

/// [`create_uniq_id`] behind what is there.
pub(crate) fn append_uniq_id(text: &mut String) {
    next_parts().append_to(text);
}

fn next_parts() -> UniqKeyParts {
    let (elapsed_millis, counter) = MAKER.next(system_time_millis());
    UniqKeyParts {
        ip: PROCESS.ip,
        process_id: PROCESS.id,
        process_hash: PROCESS.hash,
        elapsed_millis,
        counter,
    }
}

/// Gives each key a time and a counter of its own, whatever the clock does: within a month the two
/// together only grow. A counter that runs over carries into the time, and a clock that goes back is
/// not followed. (In Java the counter runs over within a busy millisecond.)
struct Maker(Mutex<Made>);

#[derive(Clone, Copy)]
struct Made {
    month_start: i64,
    month_end: i64,
    /// Time and counter of the last key as one number.
    last: u64,
}

const COUNTER_BITS: u32 = 16;

impl Maker {
    const fn new() -> Self {
        Self(Mutex::new(Made {
            month_start: 0,
            month_end: 0,
            last: 0,
        }))
    }

    fn next(&self, now: i64) -> (u32, u16) {
        let mut made = self.0.lock();
        if now >= made.month_end {
            let (month_start, month_end) = month_around(now);
            *made = Made {
                month_start,
                month_end,
                last: 0,
            };
        }
        let elapsed = now.saturating_sub(made.month_start).max(0) as u64;
        made.last = made.last.saturating_add(1).max(elapsed << COUNTER_BITS);
        ((made.last >> COUNTER_BITS) as u32, made.last as u16)
    }
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
    use crate::sync::{Deadline, channel, thread};

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

    /// apache/rocketmq#6919, #1751 (PR#1758), alibaba/rocketmq#443, rocketmq-clients#1174: ids came
    /// twice, because the counter of two bytes ran over within a millisecond or the clock went back.
    /// No two are equal, whatever the clock does.
    #[test]
    fn b99_ids_differ_whatever_the_clock_does() {
        const NOW: i64 = 1_709_164_800_000;
        const HOUR: i64 = 60 * 60 * 1000;
        let maker = Maker::new();
        let mut made: HashSet<_> = (0..70_000).map(|_| maker.next(NOW)).collect();
        made.extend((0..70_000).map(|_| maker.next(NOW - HOUR)));
        made.extend((0..70_000).map(|_| maker.next(NOW + 1)));
        assert_eq!(made.len(), 210_000);
    }

    /// The same threads: several threads at once.
    #[test]
    fn b99_ids_of_several_threads_differ() {
        let (sender, received) = channel::unbounded();
        let threads: Vec<_> = (0..8)
            .map(|_| {
                let sender = sender.clone();
                thread::spawn("ids", move || {
                    let ids: Vec<String> = (0..100_000).map(|_| create_uniq_id()).collect();
                    sender.send(ids).unwrap();
                })
                .unwrap()
            })
            .collect();
        drop(sender);
        let ids: HashSet<String> = received.iter().flatten().collect();
        assert_eq!(ids.len(), 800_000);
        let deadline = Deadline::after(std::time::Duration::from_secs(30));
        assert!(threads.iter().all(|thread| thread.join_until(deadline)));
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

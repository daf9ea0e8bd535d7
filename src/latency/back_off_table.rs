use std::time::Duration;

/// How long a broker is left alone after a send of a given latency.
///
/// Row `i` holds from `latency_max[i]` up to the next row; below the first one nothing happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BackOffTable {
    latency_max: Vec<Duration>,
    not_available_duration: Vec<Duration>,
}

/// Java `MQFaultStrategy#latencyMax`, in milliseconds.
const LATENCY_MAX: [u64; 7] = [50, 100, 550, 1800, 3000, 5000, 15_000];
/// Java `MQFaultStrategy#notAvailableDuration`, in milliseconds.
const NOT_AVAILABLE_DURATION: [u64; 7] = [0, 0, 2000, 5000, 6000, 10_000, 30_000];
/// A broker that is left alone for longer has been forgotten, not avoided.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

impl Default for BackOffTable {
    fn default() -> Self {
        Self {
            latency_max: LATENCY_MAX.map(Duration::from_millis).to_vec(),
            not_available_duration: NOT_AVAILABLE_DURATION.map(Duration::from_millis).to_vec(),
        }
    }
}

impl BackOffTable {
    /// The table of two columns.
    ///
    /// # Errors
    /// What is wrong with them, a sentence each. Java checks nothing: columns of different length
    /// fail there at some later send, and rows out of order are never reached.
    pub(crate) fn new(
        latency_max: &[Duration],
        not_available_duration: &[Duration],
    ) -> Result<Self, Vec<String>> {
        let mut problems = Vec::new();
        if latency_max.is_empty() {
            problems.push("latency_max is empty, the least is one row".to_owned());
        }
        if latency_max.len() != not_available_duration.len() {
            problems.push(format!(
                "latency_max has {} rows and not_available_duration {}, they must be as many",
                latency_max.len(),
                not_available_duration.len()
            ));
        }
        if let Some(pair) = latency_max.windows(2).find(|pair| pair[0] >= pair[1]) {
            problems.push(format!(
                "latency_max has {:?} before {:?}, it must ascend",
                pair[0], pair[1]
            ));
        }
        if let Some(long) = not_available_duration.iter().find(|d| **d > LONGEST) {
            problems.push(format!(
                "not_available_duration has {long:?}, the range is 0 to {LONGEST:?}"
            ));
        }
        if problems.is_empty() {
            Ok(Self {
                latency_max: latency_max.to_vec(),
                not_available_duration: not_available_duration.to_vec(),
            })
        } else {
            Err(problems)
        }
    }

    /// Java `MQFaultStrategy#computeNotAvailableDuration`: the last row that the latency reaches.
    pub(crate) fn not_available_duration(&self, latency: Duration) -> Duration {
        self.latency_max
            .iter()
            .zip(&self.not_available_duration)
            .rev()
            .find(|(threshold, _)| latency >= **threshold)
            .map_or(Duration::ZERO, |(_, duration)| *duration)
    }

    pub(crate) fn columns(&self) -> (&[Duration], &[Duration]) {
        (&self.latency_max, &self.not_available_duration)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: &[u64]) -> Vec<Duration> {
        millis.iter().copied().map(Duration::from_millis).collect()
    }

    #[test]
    fn each_row_holds_up_to_the_next_one() {
        let table = BackOffTable::default();
        for (from, to, duration) in [
            (0, 549, 0),
            (550, 1799, 2000),
            (1800, 2999, 5000),
            (3000, 4999, 6000),
            (5000, 14_999, 10_000),
            (15_000, 1_000_000, 30_000),
        ] {
            for latency in [from, (from + to) / 2, to] {
                let found = table.not_available_duration(Duration::from_millis(latency));
                assert_eq!(found, Duration::from_millis(duration), "{latency} ms");
            }
        }
    }

    #[test]
    fn a_table_may_have_rows_of_its_own() {
        let table = BackOffTable::new(&ms(&[10, 20]), &ms(&[7, 5])).unwrap();
        let at = |millis| table.not_available_duration(Duration::from_millis(millis));
        assert_eq!([at(9), at(10), at(19), at(20)].to_vec(), ms(&[0, 7, 7, 5]));
    }

    #[test]
    fn tables_that_cannot_be_meant_are_refused_with_the_reason() {
        for (latency, duration, reason) in [
            (vec![], vec![], "the least is one row"),
            (ms(&[1, 2]), ms(&[0]), "2 rows and not_available_duration 1"),
            (ms(&[500, 1000, 550]), ms(&[0, 0, 2000]), "must ascend"),
            (ms(&[5, 5]), ms(&[0, 0]), "must ascend"),
            (ms(&[5]), ms(&[86_400_001]), "the range is 0 to 86400s"),
        ] {
            let problems = BackOffTable::new(&latency, &duration).unwrap_err();
            assert!(problems[0].contains(reason), "{problems:?}");
        }
    }
}

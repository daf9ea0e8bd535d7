use std::sync::{Mutex, Once};

use log::{Level, LevelFilter, Log, Metadata, Record};

/// Keeps what the library logs as warnings and errors, for tests of what a user gets to read.
struct Logs(Mutex<Vec<(Level, String)>>);

static LOGS: Logs = Logs(Mutex::new(Vec::new()));

impl Log for Logs {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= Level::Warn
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            let line = (record.level(), record.args().to_string());
            self.0.lock().unwrap().push(line);
        }
    }

    fn flush(&self) {}
}

/// Begins to keep logs; may be called by each test of a binary.
pub(crate) fn keep_logs() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        log::set_logger(&LOGS).unwrap();
        log::set_max_level(LevelFilter::Warn);
    });
}

/// The kept lines with all of these words, which must tell the test apart from others.
pub(crate) fn logged(words: &[&str]) -> Vec<(Level, String)> {
    let lines = LOGS.0.lock().unwrap();
    lines
        .iter()
        .filter(|(_, line)| words.iter().all(|word| line.contains(word)))
        .cloned()
        .collect()
}

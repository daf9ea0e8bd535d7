//! How much asynchronous sends may have under way, changed while the producer runs.

use super::back_pressure::Sends;
use super::default_mq_producer::DefaultMQProducer;
use crate::client_config;
use crate::error::Result;

/// Java `DefaultMQProducer#setBackPressureForAsyncSendNum` raises what is less to this.
const LEAST: Sends = Sends {
    count: 10,
    bytes: 1024 * 1024,
};

/// What is wrong with the limits.
pub(super) fn problems(count: usize, bytes: usize) -> Vec<String> {
    let limits = [
        ("back_pressure_for_async_send_num", count, LEAST.count),
        ("back_pressure_for_async_send_size", bytes, LEAST.bytes),
    ];
    let wrong = limits.iter().filter(|(_, value, least)| value < least);
    wrong
        .map(|(name, value, least)| format!("{name} is {value}, the least is {least}"))
        .collect()
}

impl DefaultMQProducer {
    /// Switches on or off that asynchronous sends wait for room, from the next one on; see
    /// [`enable_backpressure_for_async_mode`](crate::DefaultMQProducerBuilder::enable_backpressure_for_async_mode).
    /// Those that wait go on when it is switched off. What began while it was off takes no room.
    ///
    /// # Java
    /// `DefaultMQProducer#setEnableBackpressureForAsyncMode`
    pub fn set_enable_backpressure_for_async_mode(&self, enable: bool) {
        self.inner().back_pressure.set_enabled(enable);
    }

    /// Whether asynchronous sends wait for room.
    pub fn is_enable_backpressure_for_async_mode(&self) -> bool {
        self.inner().back_pressure.is_enabled()
    }

    /// Changes how many asynchronous sends may be under way, at least 10. Those under way count, so
    /// with fewer the next one begins once enough of them have ended.
    ///
    /// # Errors
    /// [`InvalidConfig`](crate::Error::InvalidConfig) for less; nothing has changed then.
    ///
    /// # Java
    /// `DefaultMQProducer#setBackPressureForAsyncSendNum`, which raises what is less to 10.
    pub fn set_back_pressure_for_async_send_num(&self, count: usize) -> Result<()> {
        client_config::reject(problems(count, LEAST.bytes))?;
        self.inner().back_pressure.set_max(|max| max.count = count);
        Ok(())
    }

    /// Changes how many bytes of bodies may be under way in asynchronous sends, at least 1 MiB. Those
    /// under way count.
    ///
    /// # Errors
    /// [`InvalidConfig`](crate::Error::InvalidConfig) for less; nothing has changed then.
    ///
    /// # Java
    /// `DefaultMQProducer#setBackPressureForAsyncSendSize`, which raises what is less to 1 MiB.
    pub fn set_back_pressure_for_async_send_size(&self, bytes: usize) -> Result<()> {
        client_config::reject(problems(LEAST.count, bytes))?;
        self.inner().back_pressure.set_max(|max| max.bytes = bytes);
        Ok(())
    }

    /// How many asynchronous sends may be under way.
    pub fn back_pressure_for_async_send_num(&self) -> usize {
        self.inner().back_pressure.max().count
    }

    /// How many bytes of bodies may be under way in asynchronous sends.
    pub fn back_pressure_for_async_send_size(&self) -> usize {
        self.inner().back_pressure.max().bytes
    }

    /// How many asynchronous sends are under way, of those that wait for room, and the bytes of
    /// their bodies.
    ///
    /// # Java
    /// The limits less `DefaultMQProducerImpl#getSemaphoreAsyncSendNumAvailablePermits` and
    /// `#getSemaphoreAsyncSendSizeAvailablePermits`.
    pub fn back_pressure_in_use(&self) -> (usize, usize) {
        let used = self.inner().back_pressure.used();
        (used.count, used.bytes)
    }
}

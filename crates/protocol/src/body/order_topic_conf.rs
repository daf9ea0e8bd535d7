//! Which queues an ordered topic has, as somebody has typed it.

/// The most queues that one broker is given.
const MAX_QUEUES_PER_BROKER: i32 = 65_536;

/// An order configuration: brokers with their number of queues, in the order of the round, written
/// `broker:queues` and joined by `;`. It is kept by name servers under the key of the topic in the
/// namespace `ORDER_TOPIC_CONFIG`, and comes with routes where `orderMessageEnable` is on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderTopicConf<'a> {
    /// The brokers and how many queues each has.
    pub brokers: Vec<(&'a str, i32)>,
    /// Segments without a broker, without a number, or with a number that is none of queues; they are
    /// passed over. (Java fails at the first one.)
    pub bad_segments: Vec<&'a str>,
}

impl<'a> OrderTopicConf<'a> {
    /// Reads a configuration. Blanks around segments are passed over, and segments without any text.
    pub fn parse(conf: &'a str) -> Self {
        let mut brokers = Vec::new();
        let mut bad_segments = Vec::new();
        for segment in conf
            .split(';')
            .map(str::trim)
            .filter(|segment| !segment.is_empty())
        {
            match parse_segment(segment) {
                Some(broker) => brokers.push(broker),
                None => bad_segments.push(segment),
            }
        }
        Self {
            brokers,
            bad_segments,
        }
    }
}

fn parse_segment(segment: &str) -> Option<(&str, i32)> {
    let mut words = segment.split(':');
    let broker = words.next().filter(|broker| !broker.is_empty())?;
    let queues = words.next()?.trim().parse().ok()?;
    (0..=MAX_QUEUES_PER_BROKER)
        .contains(&queues)
        .then_some((broker, queues))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_segments_count_and_bad_ones_are_told() {
        for (conf, bad) in [
            ("a:4;b:2", &[] as &[&str]),
            ("a:4;b:2;", &[]),
            ("; a:4 ;b:2", &[]),
            ("a:4;b;b:2", &["b"]),
            ("a:4;b:x;:3;b:2", &["b:x", ":3"]),
            (
                "a:4;b:-1;b:2;c:65537;d:99999999999",
                &["b:-1", "c:65537", "d:99999999999"],
            ),
        ] {
            let parsed = OrderTopicConf::parse(conf);
            assert_eq!(parsed.brokers, [("a", 4), ("b", 2)], "{conf}");
            assert_eq!(parsed.bad_segments, bad, "{conf}");
        }
        assert_eq!(OrderTopicConf::parse("a:65536;b:0").bad_segments, [""; 0]);
    }
}

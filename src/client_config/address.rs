//! Addresses as RocketMQ writes them: `host:port`, IPv6 hosts in brackets.

use std::borrow::Cow;

/// How far below a broker's port its second one lies (Java `MixAll#brokerVIPChannel`).
const VIP_PORT_DISTANCE: u16 = 2;

/// Splits `host:port` at the last colon and takes an IPv6 host out of its brackets. The error says
/// what is wrong, without the address.
pub(crate) fn split_address(addr: &str) -> Result<(&str, u16), &'static str> {
    if addr.starts_with('[') && addr.ends_with(']') {
        return Err("there is no port behind the brackets");
    }
    let (host, port) = addr.rsplit_once(':').ok_or("there is no port")?;
    let host = match host.strip_prefix('[') {
        Some(rest) => rest
            .strip_suffix(']')
            .ok_or("an opening bracket has no closing one before the port")?,
        None if host.contains(':') => {
            return Err("an IPv6 address needs brackets, and a port behind them");
        }
        None => host,
    };
    if host.is_empty() {
        return Err("there is no host");
    }
    if host.contains(|c: char| c.is_whitespace() || c.is_control() || "[]/;,".contains(c)) {
        return Err("a host has no blanks and none of [ ] / ; ,");
    }
    if port.starts_with('+') {
        return Err("the port is not a number from 1 to 65535");
    }
    match port.parse::<u16>() {
        Ok(port) if port > 0 => Ok((host, port)),
        _ => Err("the port is not a number from 1 to 65535"),
    }
}

/// The address of a broker's VIP channel. An address without one stays as it is: that of port 2 or
/// 1, and what is no address at all, which the connect will complain of.
pub(crate) fn vip_address(addr: &str) -> Cow<'_, str> {
    let vip = split_address(addr).ok().and_then(|(_, port)| {
        let host = addr.rsplit_once(':')?.0;
        let port = port.checked_sub(VIP_PORT_DISTANCE).filter(|p| *p > 0)?;
        Some(format!("{host}:{port}"))
    });
    vip.map_or(Cow::Borrowed(addr), Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_colon_parts_host_and_port() {
        assert_eq!(split_address("h:1"), Ok(("h", 1)));
        assert_eq!(split_address("10.0.0.1:65535"), Ok(("10.0.0.1", 65535)));
        assert_eq!(
            split_address("[2001:db8::1]:10911"),
            Ok(("2001:db8::1", 10911))
        );
        assert_eq!(
            split_address("[fe80::1%eth0]:10911"),
            Ok(("fe80::1%eth0", 10911))
        );
    }

    #[test]
    fn what_is_no_address_says_why() {
        let why = |addr| split_address(addr).unwrap_err();
        assert_eq!(why("host"), "there is no port");
        assert!(why("2001:db8::1").contains("brackets"));
        assert_eq!(why("[::1]"), "there is no port behind the brackets");
        assert_eq!(why(":1"), "there is no host");
        for addr in ["a b:1", "a,b:1", "a\u{0}b:1"] {
            assert!(why(addr).starts_with("a host has no blanks"), "{addr}");
        }
        assert!(why("[2001:db8::1:10911").contains("bracket"));
        for addr in ["h:70000", "h:0", "h:", "h:+1", "h:-1", "h:x"] {
            assert_eq!(
                why(addr),
                "the port is not a number from 1 to 65535",
                "{addr}"
            );
        }
        for addr in [":1", "[]:1", "a b:1", "a;b:1", "http://h:1"] {
            assert!(split_address(addr).is_err(), "{addr}");
        }
    }

    /// apache/rocketmq#7822, #10834, rocketmq-client-go#1215: addresses with brackets were parted at
    /// their first colon. The last one parts host and port, and the VIP channel's port is never 0.
    #[test]
    fn b72_addresses_are_parted_at_the_last_colon() {
        assert_eq!(vip_address("127.0.0.1:10911"), "127.0.0.1:10909");
        assert_eq!(vip_address("[::1]:10911"), "[::1]:10909");
        let parted = split_address("[2001:db8::1]:10911");
        assert_eq!(parted, Ok(("2001:db8::1", 10911)));
        for bad in ["2001:db8::1", "host", "h:70000"] {
            assert!(split_address(bad).is_err(), "{bad}");
        }
        assert_eq!(vip_address("h:2"), "h:2");
    }

    #[test]
    fn the_vip_channel_is_two_ports_below() {
        assert_eq!(vip_address("127.0.0.1:10911"), "127.0.0.1:10909");
        assert_eq!(vip_address("[::1]:10911"), "[::1]:10909");
        assert_eq!(vip_address("h:3"), "h:1");
        assert_eq!(vip_address("h:2"), "h:2", "never port 0");
        assert_eq!(vip_address("h:1"), "h:1");
        assert_eq!(vip_address("h"), "h");
    }
}

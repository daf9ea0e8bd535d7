//! Which servers are reached through which SOCKS5 proxy (Java `SocksProxyConfig`).

use std::cmp::Reverse;
use std::fmt;
use std::net::IpAddr;

use serde_json::Value;

use super::address::split_address;

/// The range that matches every server, also one that is given by name.
const EVERYTHING: &str = "0.0.0.0/0";
/// The longest name or password that the protocol can carry.
const MAX_CREDENTIAL: usize = 255;

/// A proxy and who it is told to be asking.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct SocksProxy {
    /// `host:port`
    pub(crate) addr: String,
    pub(crate) username: String,
    pub(crate) password: String,
}

/// Ranges of addresses, the narrowest first, each with its proxy.
///
/// # Java
/// `NettyRemotingClient#getProxy`, which takes the first match in the order of a hash map, and knows
/// IPv4 ranges only.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SocksProxies(Vec<(Range, SocksProxy)>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Range {
    Cidr { network: IpAddr, bits: u8 },
    Everything,
}

impl SocksProxies {
    /// Reads `{"10.0.0.0/8": {"addr": "host:port", "username": "…", "password": "…"}, …}`.
    pub(crate) fn parse(text: &str) -> Result<Self, Vec<String>> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let entries = match serde_json::from_str(text) {
            Ok(Value::Object(entries)) => entries,
            Ok(_) => return Err(vec!["it is not a JSON object".to_owned()]),
            Err(error) => return Err(vec![format!("it is not JSON: {error}")]),
        };
        let mut proxies = Vec::new();
        let mut problems = Vec::new();
        for (cidr, proxy) in &entries {
            match (Range::parse(cidr), SocksProxy::parse(proxy)) {
                (Ok(range), Ok(proxy)) => proxies.push((range, proxy)),
                (range, proxy) => problems.extend(
                    [range.err(), proxy.err()]
                        .into_iter()
                        .flatten()
                        .map(|problem| format!("{cidr}: {problem}")),
                ),
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        proxies.sort_by_key(|(range, _)| Reverse(range.bits()));
        Ok(Self(proxies))
    }

    /// The proxy for an address; for the name of a host only one that serves everything.
    pub(crate) fn find(&self, ip: Option<IpAddr>) -> Option<&SocksProxy> {
        self.0
            .iter()
            .find(|(range, _)| range.contains(ip))
            .map(|(_, proxy)| proxy)
    }
}

impl Range {
    fn parse(text: &str) -> Result<Self, String> {
        if text == EVERYTHING {
            return Ok(Self::Everything);
        }
        let wrong = || "it is not a range like 10.0.0.0/8".to_owned();
        let (network, bits) = text.split_once('/').ok_or_else(wrong)?;
        let network: IpAddr = network.parse().map_err(|_| wrong())?;
        let bits: u8 = bits.parse().map_err(|_| wrong())?;
        let most = if network.is_ipv4() { 32 } else { 128 };
        if bits > most {
            return Err(format!("{bits} bits are more than an address has"));
        }
        Ok(Self::Cidr { network, bits })
    }

    /// How narrow the range is, everything being the widest.
    fn bits(&self) -> Option<u8> {
        match self {
            Self::Cidr { bits, .. } => Some(*bits),
            Self::Everything => None,
        }
    }

    fn contains(&self, ip: Option<IpAddr>) -> bool {
        match (self, ip) {
            (Self::Everything, _) => true,
            (Self::Cidr { .. }, None) => false,
            (Self::Cidr { network, bits }, Some(ip)) => match (network, ip.to_canonical()) {
                (IpAddr::V4(network), IpAddr::V4(ip)) => {
                    let mask = u32::MAX.checked_shl(32 - u32::from(*bits)).unwrap_or(0);
                    network.to_bits() & mask == ip.to_bits() & mask
                }
                (IpAddr::V6(network), IpAddr::V6(ip)) => {
                    let mask = u128::MAX.checked_shl(128 - u32::from(*bits)).unwrap_or(0);
                    network.to_bits() & mask == ip.to_bits() & mask
                }
                _ => false,
            },
        }
    }
}

impl SocksProxy {
    fn parse(value: &Value) -> Result<Self, String> {
        let text = |name: &str| match value.get(name) {
            None | Some(Value::Null) => Ok(String::new()),
            Some(Value::String(text)) if text.len() <= MAX_CREDENTIAL => Ok(text.clone()),
            Some(Value::String(_)) => Err(format!("{name} is longer than {MAX_CREDENTIAL} bytes")),
            Some(_) => Err(format!("{name} is not a text")),
        };
        let proxy = Self {
            addr: text("addr")?,
            username: text("username")?,
            password: text("password")?,
        };
        split_address(&proxy.addr)
            .map_err(|problem| format!("addr {:?} is not host:port: {problem}", proxy.addr))?;
        Ok(proxy)
    }

    pub(crate) fn has_credentials(&self) -> bool {
        !(self.username.is_empty() && self.password.is_empty())
    }
}

impl fmt::Debug for SocksProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SocksProxy")
            .field("addr", &self.addr)
            .field("username", &self.username)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addr_for<'a>(proxies: &'a SocksProxies, ip: &str) -> Option<&'a str> {
        proxies
            .find(ip.parse().ok())
            .map(|proxy| proxy.addr.as_str())
    }

    #[test]
    fn the_narrowest_range_decides() {
        let proxies = SocksProxies::parse(
            r#"{"0.0.0.0/0": {"addr": "all:1"},
                "10.0.0.0/8": {"addr": "ten:1"},
                "10.1.2.3/32": {"addr": "one:1"},
                "2001:db8::/32": {"addr": "six:1"}}"#,
        )
        .unwrap();
        assert_eq!(addr_for(&proxies, "10.1.2.3"), Some("one:1"));
        assert_eq!(addr_for(&proxies, "10.1.2.4"), Some("ten:1"));
        assert_eq!(addr_for(&proxies, "::ffff:10.1.2.4"), Some("ten:1"));
        assert_eq!(addr_for(&proxies, "11.0.0.1"), Some("all:1"));
        assert_eq!(addr_for(&proxies, "2001:db8::9"), Some("six:1"));
        assert_eq!(addr_for(&proxies, "2001:db9::9"), Some("all:1"));
        assert_eq!(addr_for(&proxies, "host"), Some("all:1"));
    }

    #[test]
    fn what_no_range_holds_is_reached_directly() {
        let proxies = SocksProxies::parse(r#"{"10.0.0.0/8": {"addr": "ten:1"}}"#).unwrap();
        assert_eq!(addr_for(&proxies, "11.0.0.1"), None);
        assert_eq!(addr_for(&proxies, "::1"), None);
        assert_eq!(addr_for(&proxies, "host"), None);
        for none in ["{}", "", " "] {
            assert_eq!(SocksProxies::parse(none), Ok(SocksProxies::default()));
        }
    }

    #[test]
    fn everything_that_is_wrong_is_listed() {
        let problems = SocksProxies::parse(
            r#"{"10.0.0.0": {"addr": "h:1"}, "10.0.0.0/33": {"addr": "h"}, "::/0": {"addr": 1}}"#,
        )
        .unwrap_err();
        assert_eq!(problems.len(), 4, "{problems:?}");
        assert!(SocksProxies::parse("[]").is_err());
        assert!(SocksProxies::parse("{").is_err());
        let long = format!(
            r#"{{"::/0": {{"addr": "h:1", "username": "{}"}}}}"#,
            "x".repeat(256)
        );
        assert!(SocksProxies::parse(&long).is_err());
    }

    #[test]
    fn a_password_is_not_shown() {
        let proxies =
            SocksProxies::parse(r#"{"::/0": {"addr": "h:1", "password": "secret"}}"#).unwrap();
        assert!(!format!("{proxies:?}").contains("secret"));
    }
}

//! The conversation with a SOCKS5 proxy (RFC 1928, RFC 1929), without a socket.

use std::net::SocketAddr;

use crate::client_config::SocksProxy;

const VERSION: u8 = 5;
const NO_AUTHENTICATION: u8 = 0;
const USERNAME_PASSWORD: u8 = 2;
const NO_ACCEPTABLE_METHOD: u8 = 0xFF;
const CONNECT: u8 = 1;
const IPV4: u8 = 1;
const DOMAIN: u8 = 3;
const IPV6: u8 = 4;

/// Where the proxy is asked to connect to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    Addr(SocketAddr),
    /// A name that the proxy looks up.
    Name(String, u16),
}

/// One conversation. The caller writes what `output` has, reads exactly
/// [`wanted`](Self::wanted) bytes, and hands them to [`input`](Self::input), until that says it is
/// done; the bytes that follow are the server's.
#[derive(Debug)]
pub(super) struct Socks5Handshake {
    proxy: SocksProxy,
    target: Target,
    step: Step,
    /// Bytes to write before anything is read.
    pub(super) output: Vec<u8>,
    input: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// The method that the proxy chose.
    Method,
    /// Its verdict on name and password.
    Authentication,
    /// The answer up to the first byte of the address, which may be its length.
    Answer,
    /// The rest of an address that nobody needs.
    Rest(usize),
}

impl Socks5Handshake {
    pub(super) fn new(proxy: SocksProxy, target: Target) -> Self {
        let methods: &[u8] = if proxy.has_credentials() {
            &[NO_AUTHENTICATION, USERNAME_PASSWORD]
        } else {
            &[NO_AUTHENTICATION]
        };
        let mut output = vec![VERSION, methods.len() as u8];
        output.extend_from_slice(methods);
        Self {
            proxy,
            target,
            step: Step::Method,
            output,
            input: Vec::new(),
        }
    }

    /// The proxy's address.
    pub(super) fn addr(&self) -> &str {
        &self.proxy.addr
    }

    /// How many bytes are to be read next, at least 1.
    pub(super) fn wanted(&self) -> usize {
        self.step.length() - self.input.len()
    }

    /// Takes bytes that were read, [`wanted`](Self::wanted) at most. `true` when the proxy has
    /// connected to the target.
    ///
    /// # Errors
    /// What the proxy does not grant, or says that is not SOCKS5.
    pub(super) fn input(&mut self, bytes: &[u8]) -> Result<bool, String> {
        self.input.extend_from_slice(bytes);
        if self.input.len() < self.step.length() {
            return Ok(false);
        }
        let input = std::mem::take(&mut self.input);
        match (self.step, input.as_slice()) {
            (Step::Method, [VERSION, NO_AUTHENTICATION]) => self.ask()?,
            (Step::Method, [VERSION, USERNAME_PASSWORD]) if self.proxy.has_credentials() => {
                self.authenticate();
            }
            (Step::Method, [VERSION, NO_ACCEPTABLE_METHOD]) => {
                return Err("it wants a way of authentication that is not offered".to_owned());
            }
            (Step::Authentication, [_, 0]) => self.ask()?,
            (Step::Authentication, _) => return Err("it refused name and password".to_owned()),
            (Step::Answer, [VERSION, 0, _, kind, first]) => {
                self.step = Step::Rest(match *kind {
                    IPV4 => 4 + 2 - 1,
                    IPV6 => 16 + 2 - 1,
                    DOMAIN => usize::from(*first) + 2,
                    other => return Err(format!("its answer has an address of kind {other}")),
                });
            }
            (Step::Answer, [VERSION, code, ..]) => return Err(refusal(*code)),
            (Step::Rest(_), _) => return Ok(true),
            _ => return Err("it does not speak SOCKS5".to_owned()),
        }
        Ok(false)
    }

    fn authenticate(&mut self) {
        self.output = vec![1];
        for text in [&self.proxy.username, &self.proxy.password] {
            // At most 255 bytes each, by the check of the settings.
            self.output.push(text.len() as u8);
            self.output.extend_from_slice(text.as_bytes());
        }
        self.step = Step::Authentication;
    }

    fn ask(&mut self) -> Result<(), String> {
        self.output = vec![VERSION, CONNECT, 0];
        let port = match &self.target {
            Target::Addr(SocketAddr::V4(addr)) => {
                self.output.push(IPV4);
                self.output.extend_from_slice(&addr.ip().octets());
                addr.port()
            }
            Target::Addr(SocketAddr::V6(addr)) => {
                self.output.push(IPV6);
                self.output.extend_from_slice(&addr.ip().octets());
                addr.port()
            }
            Target::Name(name, port) => {
                let length = u8::try_from(name.len())
                    .map_err(|_| "the name of the server is longer than 255 bytes".to_owned())?;
                self.output.extend_from_slice(&[DOMAIN, length]);
                self.output.extend_from_slice(name.as_bytes());
                *port
            }
        };
        self.output.extend_from_slice(&port.to_be_bytes());
        self.step = Step::Answer;
        Ok(())
    }
}

impl Step {
    fn length(self) -> usize {
        match self {
            Self::Method | Self::Authentication => 2,
            Self::Answer => 5,
            Self::Rest(length) => length,
        }
    }
}

fn refusal(code: u8) -> String {
    let words = match code {
        1 => "general failure",
        2 => "not allowed by its rules",
        3 => "network unreachable",
        4 => "host unreachable",
        5 => "connection refused",
        6 => "it took too long",
        7 => "it does not make connections",
        8 => "it does not know this kind of address",
        _ => "no reason it knows",
    };
    format!("it could not connect: {words} ({code})")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxy(username: &str, password: &str) -> SocksProxy {
        SocksProxy {
            addr: "proxy:1080".into(),
            username: username.into(),
            password: password.into(),
        }
    }

    fn target() -> Target {
        Target::Addr("10.0.0.1:9876".parse().unwrap())
    }

    /// Feeds an answer byte by byte.
    fn feed(handshake: &mut Socks5Handshake, answer: &[u8]) -> Result<bool, String> {
        let mut done = false;
        for byte in answer {
            assert!(
                !done && handshake.wanted() >= 1,
                "it reads no further than the proxy's words"
            );
            done = handshake.input(&[*byte])?;
        }
        Ok(done)
    }

    #[test]
    fn without_credentials_it_asks_at_once() {
        let mut handshake = Socks5Handshake::new(proxy("", ""), target());
        assert_eq!(handshake.output, [5, 1, 0]);
        assert_eq!(feed(&mut handshake, &[5, 0]), Ok(false));
        assert_eq!(handshake.output, [5, 1, 0, 1, 10, 0, 0, 1, 38, 148]);
        assert_eq!(
            feed(&mut handshake, &[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]),
            Ok(true)
        );
    }

    #[test]
    fn with_credentials_it_says_them_when_asked() {
        let mut handshake = Socks5Handshake::new(proxy("me", "pw"), target());
        assert_eq!(handshake.output, [5, 2, 0, 2]);
        assert_eq!(feed(&mut handshake, &[5, 2]), Ok(false));
        assert_eq!(handshake.output, b"\x01\x02me\x02pw");
        assert_eq!(feed(&mut handshake, &[1, 0]), Ok(false));
        assert_eq!(handshake.output[..4], [5, 1, 0, 1]);
        let mut refused = Socks5Handshake::new(proxy("me", ""), target());
        feed(&mut refused, &[5, 2]).unwrap();
        assert_eq!(
            feed(&mut refused, &[1, 1]).unwrap_err(),
            "it refused name and password"
        );
    }

    #[test]
    fn names_and_ipv6_addresses_have_their_forms() {
        let name = Target::Name("ns".into(), 1);
        let mut handshake = Socks5Handshake::new(proxy("", ""), name);
        feed(&mut handshake, &[5, 0]).unwrap();
        assert_eq!(handshake.output, [5, 1, 0, 3, 2, b'n', b's', 0, 1]);
        assert_eq!(
            feed(&mut handshake, &[5, 0, 0, 3, 3, b'a', b'b', b'c', 0, 1]),
            Ok(true)
        );

        let v6 = Target::Addr("[::1]:2".parse().unwrap());
        let mut handshake = Socks5Handshake::new(proxy("", ""), v6);
        feed(&mut handshake, &[5, 0]).unwrap();
        assert_eq!(handshake.output.len(), 4 + 16 + 2);
        let mut answer = vec![5, 0, 0, 4];
        answer.extend_from_slice(&[0; 18]);
        assert_eq!(feed(&mut handshake, &answer), Ok(true));

        let long = Target::Name("x".repeat(256), 1);
        let mut handshake = Socks5Handshake::new(proxy("", ""), long);
        assert!(feed(&mut handshake, &[5, 0]).unwrap_err().contains("255"));
    }

    #[test]
    fn what_the_proxy_does_not_grant_is_said() {
        let start = || Socks5Handshake::new(proxy("", ""), target());
        for (answer, words) in [
            (&[5, 0xFF][..], "not offered"),
            (&[5, 2], "does not speak"),
            (&[4, 0], "does not speak"),
            (b"HT", "does not speak"),
            (&[5, 0, 5, 5, 0, 1, 0], "connection refused (5)"),
            (&[5, 0, 5, 77, 0, 1, 0], "(77)"),
            (&[5, 0, 4, 0, 0, 1, 0], "does not speak"),
            (&[5, 0, 5, 0, 0, 9, 0], "kind 9"),
        ] {
            let error = feed(&mut start(), answer).unwrap_err();
            assert!(error.contains(words), "{answer:?}: {error}");
        }
    }
}

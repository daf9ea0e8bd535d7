//! Asks over HTTP where the name servers are (Java `DefaultTopAddressing`).

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};

use crate::client_config::{ClientConfig, split_address};
use crate::sync::Deadline;

/// A list of name servers is some hundred bytes; what is much longer is something else.
const MAX_ANSWER: usize = 64 * 1024;
const DEFAULT_PORT: u16 = 8080;

/// Where to ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TopAddressing {
    host: String,
    port: u16,
    /// The `Host` of the request: the domain as it was given, with the port.
    authority: String,
    path: String,
}

impl TopAddressing {
    /// `None` when no domain is set (Java `MixAll#getWSAddr`).
    pub(crate) fn of(config: &ClientConfig) -> Option<Self> {
        let domain = config.namesrv_domain.as_deref()?;
        let (host, port) = split_address(domain).unwrap_or((domain, DEFAULT_PORT));
        let authority = if domain.contains(':') {
            domain.to_owned()
        } else {
            format!("{domain}:{DEFAULT_PORT}")
        };
        let unit = config.unit_name.as_deref().unwrap_or_default().trim();
        let of_unit = if unit.is_empty() {
            String::new()
        } else {
            format!("-{unit}?nofix=1")
        };
        Some(Self {
            host: host.to_owned(),
            port,
            authority,
            path: format!("/rocketmq/{}{of_unit}", config.namesrv_domain_subgroup),
        })
    }

    /// For messages to people.
    pub(crate) fn url(&self) -> String {
        format!("http://{}{}", self.authority, self.path)
    }

    /// The first line of the answer. It waits until the deadline at most, but for the look-up of the
    /// host's name, which has limits of its own.
    ///
    /// # Errors
    /// Nobody answers in time, or the answer is not a success with text in it.
    pub(crate) fn fetch(&self, deadline: Deadline) -> io::Result<String> {
        let mut stream = self.connect(deadline)?;
        // HTTP 1.0, so that the answer comes in one piece and the server ends the connection.
        let request = format!(
            "GET {} HTTP/1.0\r\nHost: {}\r\nAccept: */*\r\nConnection: close\r\n\r\n",
            self.path, self.authority
        );
        stream.set_write_timeout(Some(remaining(deadline)?))?;
        stream.write_all(request.as_bytes())?;
        let mut answer = Vec::new();
        let mut chunk = [0; 4096];
        loop {
            if let Some(list) = first_line(&answer, false)? {
                return Ok(list);
            }
            stream.set_read_timeout(Some(remaining(deadline)?))?;
            match stream.read(&mut chunk) {
                Ok(0) => {
                    return first_line(&answer, true)?
                        .ok_or_else(|| io::Error::other("the answer is empty or cut short"));
                }
                Ok(length) => answer.extend_from_slice(chunk.get(..length).unwrap_or_default()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Err(late()),
                Err(error) => return Err(error),
            }
            if answer.len() > MAX_ANSWER {
                return Err(io::Error::other(
                    "the answer is too long for a list of servers",
                ));
            }
        }
    }

    fn connect(&self, deadline: Deadline) -> io::Result<TcpStream> {
        let mut last = io::Error::other("the name has no address");
        for addr in (self.host.as_str(), self.port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&addr, remaining(deadline)?) {
                Ok(stream) => return Ok(stream),
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

fn late() -> io::Error {
    io::Error::new(ErrorKind::TimedOut, "no answer in time")
}

fn remaining(deadline: Deadline) -> io::Result<std::time::Duration> {
    let remaining = deadline.remaining();
    if remaining.is_zero() {
        Err(late())
    } else {
        Ok(remaining)
    }
}

/// The body's first line, once it is there whole: ended by a line break, by the announced length, or
/// by the end of the connection.
fn first_line(answer: &[u8], ended: bool) -> io::Result<Option<String>> {
    let Some(head_end) = answer.windows(4).position(|w| w == b"\r\n\r\n") else {
        return Ok(None);
    };
    let (head, body) = answer.split_at(head_end);
    let body = body.get(4..).unwrap_or_default();
    let head = String::from_utf8_lossy(head);
    let mut lines = head.lines();
    let status = lines.next().unwrap_or_default();
    let mut words = status.split(' ');
    let is_http = words.next().is_some_and(|word| word.starts_with("HTTP/"));
    if !is_http || words.next() != Some("200") {
        return Err(io::Error::other(format!("the answer is {status:?}")));
    }
    let mut whole = ended;
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        let (name, value) = (name.trim(), value.trim());
        if name.eq_ignore_ascii_case("Transfer-Encoding") && !value.eq_ignore_ascii_case("identity")
        {
            return Err(io::Error::other(format!(
                "the answer is encoded as {value:?}, which HTTP 1.0 does not know"
            )));
        }
        if name.eq_ignore_ascii_case("Content-Length") {
            whole |= value
                .parse()
                .is_ok_and(|length: usize| body.len() >= length);
        }
    }
    let text = String::from_utf8_lossy(body);
    let text = text.trim_start();
    Ok(match text.split_once(['\r', '\n']) {
        Some((line, _)) => Some(line.trim().to_owned()),
        None if whole => Some(text.trim().to_owned()).filter(|line| !line.is_empty()),
        None => None,
    })
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, TcpListener};
    use std::time::Duration;

    use super::*;
    use crate::sync::thread;

    const GENEROUS: Duration = Duration::from_secs(30);

    fn asking(domain: &str, unit: Option<&str>) -> TopAddressing {
        TopAddressing::of(&ClientConfig {
            namesrv_domain: Some(domain.to_owned()),
            unit_name: unit.map(str::to_owned),
            ..ClientConfig::default()
        })
        .unwrap()
    }

    /// A server that answers once, and hands over what it was asked.
    fn serve(answer: &'static str) -> (SocketAddr, crate::sync::channel::Receiver<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let (sender, asked) = crate::sync::channel::bounded(1);
        thread::spawn("http", move || {
            let mut stream = listener.accept().unwrap().0;
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                request.push(byte[0]);
            }
            stream.write_all(answer.as_bytes()).unwrap();
            sender.send(String::from_utf8(request).unwrap()).unwrap();
        })
        .unwrap();
        (addr, asked)
    }

    fn fetch(answer: &'static str) -> io::Result<String> {
        let (addr, _asked) = serve(answer);
        asking(&addr.to_string(), None).fetch(Deadline::after(GENEROUS))
    }

    #[test]
    fn the_url_is_javas() {
        assert_eq!(TopAddressing::of(&ClientConfig::default()), None);
        assert_eq!(
            asking("ns.example", None).url(),
            "http://ns.example:8080/rocketmq/nsaddr"
        );
        assert_eq!(
            asking("ns.example:80", Some("u1")).url(),
            "http://ns.example:80/rocketmq/nsaddr-u1?nofix=1"
        );
        assert_eq!(
            asking("h", Some(" ")).url(),
            "http://h:8080/rocketmq/nsaddr"
        );
    }

    #[test]
    fn the_first_line_of_a_success_is_the_list() {
        let (addr, asked) = serve("HTTP/1.1 200 OK\r\nServer: x\r\n\r\na:1;b:2\nsecond line");
        let addressing = asking(&addr.to_string(), Some("u"));
        let list = addressing.fetch(Deadline::after(GENEROUS)).unwrap();
        assert_eq!(list, "a:1;b:2");
        let request = asked.recv_timeout(GENEROUS).unwrap();
        assert!(
            request.starts_with("GET /rocketmq/nsaddr-u?nofix=1 HTTP/1.0\r\n"),
            "{request}"
        );
        assert!(
            request.contains(&format!("\r\nHost: {addr}\r\n")),
            "{request}"
        );
    }

    #[test]
    fn an_answer_ends_with_its_length_or_with_the_connection() {
        let by_length = "HTTP/1.0 200 OK\r\ncontent-length: 3\r\n\r\na:1";
        assert_eq!(fetch(by_length).unwrap(), "a:1");
        assert_eq!(fetch("HTTP/1.0 200 OK\r\n\r\na:1").unwrap(), "a:1");
    }

    #[test]
    fn all_other_answers_are_errors() {
        for answer in [
            "HTTP/1.1 404 Not Found\r\n\r\na:1\n",
            "HTTP/1.1 302 Found\r\nLocation: /x\r\n\r\n",
            "HTTP/1.1 200 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\na:1\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\n",
            "SSH-2.0\r\n\r\na:1\n",
            "",
        ] {
            assert!(fetch(answer).is_err(), "{answer:?}");
        }
    }

    #[test]
    fn a_server_that_says_nothing_is_given_up() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addressing = asking(&listener.local_addr().unwrap().to_string(), None);
        let error = addressing
            .fetch(Deadline::after(Duration::from_millis(50)))
            .unwrap_err();
        assert_eq!(error.to_string(), "no answer in time");
    }
}

//! Servers that are reached through a SOCKS5 proxy.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking, and is outside of what loom models"
)]

mod support;

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rocketmq_blocking::{
    ConsumeFromWhere, DefaultMQProducerBuilder, DefaultMQPushConsumer, Error, MQClientManager,
    Message,
};
use support::{GENEROUS, Inbox, cluster_of, producer_at, quick, started};

/// A proxy for one user, or for all. Names it knows by a table of its own.
#[derive(Clone)]
struct Proxy {
    addr: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

#[derive(Clone)]
struct Rules {
    credentials: Option<(&'static str, &'static str)>,
    /// `name:port` → address
    names: Vec<(String, String)>,
    /// How long it thinks between two bytes.
    pause: Duration,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            credentials: None,
            names: Vec::new(),
            pause: Duration::ZERO,
        }
    }
}

impl Proxy {
    fn start(rules: Rules) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = Self {
            addr: listener.local_addr().unwrap(),
            asked: Arc::default(),
        };
        let this = proxy.clone();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (this, rules) = (this.clone(), rules.clone());
                thread::spawn(move || this.serve(stream, &rules));
            }
        });
        proxy
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    fn serve(&self, mut client: TcpStream, rules: &Rules) -> io::Result<()> {
        client.set_nodelay(true)?;
        let answer = |client: &mut TcpStream, bytes: &[u8]| -> io::Result<()> {
            for byte in bytes {
                client.write_all(&[*byte])?;
                thread::sleep(rules.pause);
            }
            Ok(())
        };
        let [version, count] = read(&mut client)?;
        assert_eq!(version, 5);
        let mut methods = vec![0; count.into()];
        client.read_exact(&mut methods)?;
        let method = if rules.credentials.is_some() { 2 } else { 0 };
        if !methods.contains(&method) {
            return answer(&mut client, &[5, 0xFF]);
        }
        answer(&mut client, &[5, method])?;
        if let Some(credentials) = rules.credentials {
            let [_] = read(&mut client)?;
            let given = (text(&mut client)?, text(&mut client)?);
            if (given.0.as_str(), given.1.as_str()) != credentials {
                return answer(&mut client, &[1, 1]);
            }
            answer(&mut client, &[1, 0])?;
        }
        let [5, 1, 0, kind] = read(&mut client)? else {
            panic!("not a connect");
        };
        let target = match kind {
            1 => {
                let [a, b, c, d, high, low] = read(&mut client)?;
                let port = u16::from_be_bytes([high, low]);
                format!("{a}.{b}.{c}.{d}:{port}")
            }
            3 => {
                let name = text(&mut client)?;
                format!("{name}:{}", u16::from_be_bytes(read(&mut client)?))
            }
            other => panic!("address of kind {other}"),
        };
        self.asked.lock().unwrap().push(target.clone());
        let known = rules.names.iter().find(|(name, _)| *name == target);
        let Ok(server) = TcpStream::connect(known.map_or(&target, |(_, addr)| addr)) else {
            return answer(&mut client, &[5, 5, 0, 1, 0, 0, 0, 0, 0, 0]);
        };
        server.set_nodelay(true)?;
        answer(&mut client, &[5, 0, 0, 3, 2, b'h', b'i', 0, 0])?;
        let (from, to) = (client.try_clone()?, server.try_clone()?);
        thread::spawn(move || pass_on(from, to));
        pass_on(server, client);
        Ok(())
    }
}

fn pass_on(mut from: TcpStream, mut to: TcpStream) {
    let _ = io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Both);
}

fn read<const N: usize>(stream: &mut TcpStream) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn text(stream: &mut TcpStream) -> io::Result<String> {
    let [length] = read(stream)?;
    let mut bytes = vec![0; length.into()];
    stream.read_exact(&mut bytes)?;
    Ok(String::from_utf8(bytes).unwrap())
}

fn builder(namesrv: &str, proxies: &str) -> DefaultMQProducerBuilder {
    producer_at(namesrv)
        .socks_proxy_config(proxies)
        .send_msg_timeout(GENEROUS)
        .mq_client_api_timeout(GENEROUS)
        .retry_times_when_send_failed(0)
}

#[test]
fn everything_goes_through_the_proxy_and_back() {
    let cluster = cluster_of(1, 1);
    let proxy = Proxy::start(Rules {
        credentials: Some(("me", "secret")),
        ..Rules::default()
    });
    let addr = proxy.addr;
    let proxies =
        format!(r#"{{"0.0.0.0/0": {{"addr": "{addr}", "username": "me", "password": "secret"}}}}"#);
    let inbox = Inbox::new();
    let consumer = quick(DefaultMQPushConsumer::builder("g"))
        .client_manager(&MQClientManager::new())
        .namesrv_addr(&cluster.namesrv_addr())
        .socks_proxy_config(&proxies)
        .consume_from_where(ConsumeFromWhere::ConsumeFromFirstOffset)
        .subscribe("T", "*")
        .message_listener(inbox.listener())
        .build()
        .unwrap();
    consumer.start().unwrap();
    let producer = started(builder(&cluster.namesrv_addr(), &proxies));
    // Longer than what a socket takes at once.
    let body: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
    let message = Message::new("T", body.clone());
    producer.send(&message).unwrap();
    assert_eq!(inbox.wait_for(1)[0].body()[..], body[..]);
    let (namesrv, broker) = (
        cluster.namesrv_addr(),
        cluster.broker_addr("broker-a").unwrap(),
    );
    let mut asked = proxy.asked();
    asked.sort();
    let mut expected = vec![namesrv.clone(), namesrv, broker.clone(), broker];
    expected.sort();
    assert_eq!(asked, expected);
    assert_eq!(cluster.connection_count(), 4, "nobody came past the proxy");
}

#[test]
fn a_proxy_may_speak_byte_by_byte() {
    let cluster = cluster_of(1, 1);
    let proxy = Proxy::start(Rules {
        pause: Duration::from_millis(2),
        ..Rules::default()
    });
    let proxies = format!(r#"{{"127.0.0.0/8": {{"addr": "{}"}}}}"#, proxy.addr);
    let producer = started(builder(&cluster.namesrv_addr(), &proxies));
    producer.send(&Message::new("T", "m")).unwrap();
    assert_eq!(proxy.asked().len(), 2);
}

#[test]
fn servers_outside_of_all_ranges_are_reached_directly() {
    let cluster = cluster_of(1, 1);
    let proxy = Proxy::start(Rules::default());
    let proxies = format!(r#"{{"10.0.0.0/8": {{"addr": "{}"}}}}"#, proxy.addr);
    let producer = started(builder(&cluster.namesrv_addr(), &proxies));
    producer.send(&Message::new("T", "m")).unwrap();
    assert!(proxy.asked().is_empty());
}

#[test]
fn a_name_is_looked_up_by_the_proxy() {
    let cluster = cluster_of(1, 1);
    let proxy = Proxy::start(Rules {
        names: vec![("ns.invalid:9876".to_owned(), cluster.namesrv_addr())],
        ..Rules::default()
    });
    let proxies = format!(r#"{{"0.0.0.0/0": {{"addr": "{}"}}}}"#, proxy.addr);
    let producer = started(builder("ns.invalid:9876", &proxies));
    producer.send(&Message::new("T", "m")).unwrap();
    assert_eq!(proxy.asked()[0], "ns.invalid:9876");
}

fn failure(proxies: &str, namesrv: &str) -> Error {
    let producer = started(builder(namesrv, proxies).connect_timeout(Duration::from_millis(200)));
    let error = producer.send(&Message::new("T", "m")).unwrap_err();
    assert!(!error.may_have_been_stored());
    error
}

#[test]
fn what_a_proxy_refuses_is_in_the_error() {
    let cluster = cluster_of(1, 1);
    let namesrv = cluster.namesrv_addr();
    let proxy = Proxy::start(Rules {
        credentials: Some(("me", "secret")),
        ..Rules::default()
    });
    let with = |rest: &str| format!(r#"{{"0.0.0.0/0": {{"addr": "{}"{rest}}}}}"#, proxy.addr);
    let through = format!("through the proxy {}", proxy.addr);
    for (proxies, words) in [
        (
            with(r#", "username": "me", "password": "no""#),
            "it refused name and password",
        ),
        (with(""), "a way of authentication that is not offered"),
    ] {
        let error = failure(&proxies, &namesrv).to_string();
        assert!(error.contains(&through) && error.contains(words), "{error}");
    }
    let open = Proxy::start(Rules::default());
    let closed = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let proxies = format!(r#"{{"0.0.0.0/0": {{"addr": "{}"}}}}"#, open.addr);
    let error = failure(&proxies, &closed.to_string()).to_string();
    assert!(error.contains("connection refused (5)"), "{error}");
    let proxies = format!(r#"{{"0.0.0.0/0": {{"addr": "{closed}"}}}}"#);
    let error = failure(&proxies, &namesrv).to_string();
    assert!(
        error.contains(&format!("through the proxy {closed}")),
        "{error}"
    );
}

#[test]
fn a_proxy_that_says_nothing_is_given_up_with_the_connect_timeout() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = listener.local_addr().unwrap();
    let proxies = format!(r#"{{"0.0.0.0/0": {{"addr": "{silent}"}}}}"#);
    let began = Instant::now();
    let error = failure(&proxies, "127.0.0.1:1").to_string();
    assert!(error.contains("no answer within 200 ms"), "{error}");
    assert!(began.elapsed() < GENEROUS, "the limit of the whole call");
}

#[test]
fn wrong_settings_are_listed() {
    let proxies = r#"{"10.0.0.0/99": {"addr": "h:1"}, "10.0.0.0/8": {"addr": "h"}}"#;
    let error = builder("127.0.0.1:1", proxies).build().unwrap_err();
    let Error::InvalidConfig { problems } = &error else {
        panic!("{error:?}");
    };
    assert_eq!(problems.len(), 2, "{problems:?}");
}

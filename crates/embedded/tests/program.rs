//! The program around the library.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod raw_client;

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use raw_client::RawClient;
use rocketmq_protocol::RemotingCommand;

fn program() -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_rocketmq-embedded"));
    program.env_remove("RUST_LOG");
    program
}

#[test]
fn it_serves_from_its_ready_line_until_standard_input_is_closed() {
    let mut child = program()
        .args("--namesrv-port 0 --broker-port 0 --brokers 2 --topic T:3 --stdin-close".split(' '))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    let words: Vec<_> = line.trim_end().split(' ').collect();
    let [ready, namesrv, brokers] = words[..] else {
        panic!("{line:?}");
    };
    assert_eq!(ready, "ready");
    let namesrv = namesrv.strip_prefix("namesrv=").unwrap();
    let brokers = brokers.strip_prefix("brokers=").unwrap();
    let brokers: Vec<_> = brokers
        .split(',')
        .map(|broker| broker.split_once(':').unwrap())
        .collect();
    assert_eq!((brokers[0].0, brokers[1].0), ("broker-a", "broker-b"));
    let mut request = RemotingCommand::request_without_header(105);
    request.ext_fields.set("topic", "T");
    let route = RawClient::connect(namesrv).call(request);
    let route = String::from_utf8(route.body_bytes().to_vec()).unwrap();
    for (_, port) in brokers {
        assert!(route.contains(&format!("127.0.0.1:{port}")), "{route}");
    }
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

#[test]
fn it_says_what_is_wrong_and_fails() {
    let bad = program().arg("--borkers").output().unwrap();
    assert_eq!(bad.status.code(), Some(2));
    let text = String::from_utf8(bad.stderr).unwrap();
    assert!(
        text.contains("unknown option \"--borkers\"; --help"),
        "{text}"
    );

    let held = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = held.local_addr().unwrap().port().to_string();
    let used = program().args(["--namesrv-port", &port]).output().unwrap();
    assert_eq!(used.status.code(), Some(1));
    let text = String::from_utf8(used.stderr).unwrap();
    assert!(
        text.contains(&format!("name server cannot listen on port {port}")),
        "{text}"
    );

    let help = program().arg("--help").output().unwrap();
    assert!(help.status.success());
    assert!(
        String::from_utf8(help.stdout)
            .unwrap()
            .contains("--namesrv-port PORT")
    );
}

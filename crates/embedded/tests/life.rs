//! Brokers that stop and start, clusters that end, and clients that misbehave.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod raw_client;

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use raw_client::{
    LIMIT, RawClient, heartbeat_data, pull_answer, pull_header, pull_request, send_request,
    wait_until,
};
use rocketmq_embedded::{Cluster, MessageQueue};
use rocketmq_protocol::{Message, RemotingCommand, request_code, sys_flag};

/// The threads of all clusters of this process.
fn server_threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    tasks
        .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok())
        .filter(|name| name.starts_with("embedded-"))
        .count()
}

#[test]
fn a_restarted_broker_has_its_address_messages_and_offsets_but_no_members() {
    let cluster = Cluster::builder().brokers(2).start().unwrap();
    cluster.create_topic("T", 1).unwrap();
    let addr = cluster.broker_addr("broker-a").unwrap();
    let mut client = RawClient::to_broker(&cluster, "broker-a");
    client.heartbeat(&heartbeat_data("c1", "g", &["T"]));
    client.note();
    client.produce(0, &Message::new("T", b"kept".as_slice()));
    let mut header = pull_header("T", 0, 0);
    header.sys_flag |= sys_flag::PULL_COMMIT_OFFSET;
    header.commit_offset = 1;
    client.call(pull_request(&header));

    cluster.stop_broker("broker-a").unwrap();
    cluster.stop_broker("broker-a").unwrap();
    assert!(client.is_closed_by_server());
    assert!(TcpStream::connect(&addr).is_err());
    assert_eq!(cluster.stored_count("T"), 1);
    assert!(cluster.consumer_ids("g").is_empty());
    let mut other = RawClient::to_broker(&cluster, "broker-b");
    assert_eq!(
        other
            .call(send_request(0, &Message::new("T", b"x".as_slice())))
            .code,
        0
    );

    cluster.start_broker("broker-a").unwrap();
    cluster.start_broker("broker-a").unwrap();
    assert_eq!(cluster.broker_addr("broker-a").unwrap(), addr);
    let mut client = RawClient::to_broker(&cluster, "broker-a");
    let (_, messages) = pull_answer(&client.call(pull_request(&pull_header("T", 0, 0))));
    assert_eq!(&messages[0].body()[..], b"kept");
    let queue = MessageQueue::new("T", "broker-a", 0);
    assert_eq!(cluster.committed_offset("g", &queue), Some(1));
    assert!(client.consumer_list("g").is_empty());
    assert!(cluster.stop_broker("broker-x").is_err());
}

#[test]
fn a_broker_that_stops_tells_no_member_that_another_is_gone() {
    const MANY: u64 = 64;
    let cluster = Cluster::builder().start().unwrap();
    // Many, so that some are still connected when the first one's end is noticed.
    let mut members: Vec<_> = (0..MANY)
        .map(|number| {
            let mut client = RawClient::to_broker(&cluster, "broker-a");
            client.heartbeat(&heartbeat_data(&format!("c{number}"), "g", &["T"]));
            client
        })
        .collect();
    let told = cluster.notes_sent("g");
    assert_eq!(told, MANY * (MANY + 1) / 2);
    cluster.stop_broker("broker-a").unwrap();
    assert_eq!(cluster.notes_sent("g"), told);
    let first = &mut members[0];
    for _ in 0..MANY {
        first.note();
    }
    assert!(first.is_closed_by_server());
}

#[test]
fn fixed_ports_are_ten_apart_and_a_port_in_use_is_told() {
    // Some free block of ports; another process may be faster, so several are tried.
    let cluster = (0..20).find_map(|_| {
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        if port > 60_000 {
            return None;
        }
        let builder = Cluster::builder().brokers(3).broker_port(port);
        builder.start().ok().map(|cluster| (port, cluster))
    });
    let (port, cluster) = cluster.expect("a free block of ports");
    assert_eq!(
        cluster.broker_addr("broker-a").unwrap(),
        format!("127.0.0.1:{port}")
    );
    let third = format!("127.0.0.1:{}", port + 20);
    assert_eq!(cluster.broker_addr("broker-c").unwrap(), third);
    let error = Cluster::builder().broker_port(port).start().unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
    assert!(
        error
            .to_string()
            .contains(&format!("broker-a cannot listen on port {port}"))
    );
}

#[test]
fn settings_that_cannot_be_are_refused() {
    for builder in [
        Cluster::builder().brokers(0),
        Cluster::builder().brokers(703),
        Cluster::builder().brokers(2).broker_port(65_530),
        Cluster::builder().long_poll_sweep(Duration::ZERO),
    ] {
        let error = builder.start().unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    }
}

/// Runs alone in a process of its own, as every thread named `embedded-` must be this cluster's.
#[test]
fn the_end_of_a_cluster_leaves_no_thread_connection_or_listener() {
    if std::env::var_os("ROCKETMQ_EMBEDDED_ALONE").is_none() {
        let status = std::process::Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "the_end_of_a_cluster_leaves_no_thread_connection_or_listener",
            ])
            .env("ROCKETMQ_EMBEDDED_ALONE", "1")
            .status()
            .unwrap();
        assert!(status.success());
        return;
    }
    for by_drop in [false, true] {
        let cluster = Cluster::builder().brokers(2).start().unwrap();
        cluster.create_topic("T", 1).unwrap();
        let addrs: Vec<_> = cluster
            .broker_names()
            .iter()
            .map(|name| cluster.broker_addr(name).unwrap())
            .chain([cluster.namesrv_addr()])
            .collect();
        let mut clients: Vec<_> = addrs.iter().map(|addr| RawClient::connect(addr)).collect();
        for client in &mut clients {
            let unknown = RemotingCommand::request_without_header(9999);
            assert_eq!(client.call(unknown).code, 3);
        }
        // One member and one waiting pull, so that something is going on.
        clients[0].heartbeat(&heartbeat_data("c1", "g", &["T"]));
        clients[0].note();
        let mut header = pull_header("T", 0, 0);
        header.sys_flag |= sys_flag::PULL_SUSPEND;
        header.suspend_timeout_millis = 3_600_000;
        clients[0].send(pull_request(&header));
        let gone = RawClient::connect(&addrs[0]);
        wait_until("four connections", || cluster.connection_count() == 4);
        drop(gone);
        wait_until("three connections", || cluster.connection_count() == 3);
        // An acceptor, a timer and a connection for each of three servers.
        wait_until("nine threads", || server_threads() == 9);
        if by_drop {
            drop(cluster);
        } else {
            cluster.shutdown();
            assert_eq!(cluster.connection_count(), 0);
            cluster.shutdown();
        }
        // The system may list a joined thread for a moment.
        wait_until("no thread", || server_threads() == 0);
        for (addr, client) in addrs.iter().zip(&mut clients) {
            assert!(client.is_closed_by_server());
            assert!(TcpStream::connect(addr).is_err(), "{addr} still listens");
        }
    }
}

#[test]
fn a_client_that_does_not_read_loses_its_connection_and_holds_nobody() {
    let cluster = Cluster::builder()
        .write_timeout(Duration::from_millis(200))
        .start()
        .unwrap();
    cluster.create_topic("T", 1).unwrap();
    let mut other = RawClient::to_broker(&cluster, "broker-a");
    other.produce(0, &Message::new("T", vec![0; 4_000_000]));
    // One whose own thread is the only one to write to it, and one that is told of changes, too.
    let mut alone = RawClient::to_broker(&cluster, "broker-a");
    for _ in 0..20 {
        alone.send(pull_request(&pull_header("T", 0, 0)));
    }
    wait_until("the client is gone", || cluster.connection_count() == 1);
    let mut stuck = RawClient::to_broker(&cluster, "broker-a");
    stuck.heartbeat(&heartbeat_data("stuck", "g", &["T"]));
    assert_eq!(cluster.consumer_ids("g"), ["stuck"]);
    // More than any socket buffer holds.
    for _ in 0..20 {
        stuck.send(pull_request(&pull_header("T", 0, 0)));
    }
    wait_until("the stuck client is gone", || {
        other.heartbeat(&heartbeat_data("c1", "g", &["T"]));
        cluster.consumer_ids("g") == ["c1"]
    });
}

#[test]
fn bytes_that_are_no_frames_close_the_connection_and_harm_nobody() {
    let cluster = Cluster::builder().start().unwrap();
    let mut other = RawClient::to_broker(&cluster, "broker-a");
    for bytes in [
        b"GET / HTTP/1.1\r\n\r\n".as_slice(),
        &[0xFF; 64],
        // A length beyond the limit, one too small, a header longer than its frame, an unknown
        // header form, a header that is no JSON.
        &[1, 0, 0, 1],
        &[0, 0, 0, 3],
        &[0, 0, 0, 6, 0, 0, 0, 9, 1, 1],
        &[0, 0, 0, 6, 9, 0, 0, 2, 1, 1],
        &[0, 0, 0, 6, 0, 0, 0, 2, b'x', b'y'],
    ] {
        let mut client = RawClient::to_broker(&cluster, "broker-a");
        client.stream().write_all(bytes).unwrap();
        assert!(client.is_closed_by_server(), "{bytes:?}");
        assert_eq!(
            other
                .call(RemotingCommand::request_without_header(9999))
                .code,
            3
        );
    }
}

#[test]
fn requests_that_make_no_sense_are_answered_with_1() {
    let cluster = Cluster::builder().start().unwrap();
    let mut client = RawClient::to_broker(&cluster, "broker-a");
    for code in [10, 310, 11, 361, 14, 15, 17, 29, 30, 31, 32, 34, 35, 38, 46] {
        let empty = RemotingCommand::request_without_header(code);
        let response = client.call(empty.with_body(b"{".as_slice()));
        assert_eq!(response.code, 1, "code {code}");
        assert!(response.remark.is_some_and(|text| !text.is_empty()));
    }
    let mut header = pull_header("T", 0, i64::MAX);
    cluster.create_topic("T", 1).unwrap();
    header.suspend_timeout_millis = i64::MIN;
    header.max_msg_nums = i32::MIN;
    assert_eq!(client.call(pull_request(&header)).code, 21);
    header.queue_offset = 0;
    header.sys_flag |= sys_flag::PULL_SUSPEND;
    header.suspend_timeout_millis = i64::MAX;
    let opaque = client.send(pull_request(&header));
    client.produce(0, &Message::new("T", b"x".as_slice()));
    assert_eq!(client.answer_to(opaque).code, 0);
}

#[test]
fn an_answer_without_a_question_is_passed_over() {
    let cluster = Cluster::builder().start().unwrap();
    let mut client = RawClient::to_broker(&cluster, "broker-a");
    let request = RemotingCommand::request_without_header(request_code::HEART_BEAT);
    client.send(RemotingCommand::response(&request, 0, None));
    let opaque = client.send(RemotingCommand::request_without_header(9999));
    let next = client.next(LIMIT).unwrap();
    assert_eq!((next.opaque, next.code), (opaque, 3));
}

#[test]
fn shutdown_does_not_wait_for_a_client_that_does_not_read() {
    let cluster = Cluster::builder()
        .write_timeout(Duration::from_secs(3600))
        .start()
        .unwrap();
    cluster.create_topic("T", 1).unwrap();
    let mut stuck = RawClient::to_broker(&cluster, "broker-a");
    stuck.produce(0, &Message::new("T", vec![0; 4_000_000]));
    for _ in 0..20 {
        stuck.send(pull_request(&pull_header("T", 0, 0)));
    }
    // Wherever its thread is by now, closing the socket ends the write.
    let started = Instant::now();
    cluster.shutdown();
    assert!(started.elapsed() < LIMIT);
}

#[test]
fn more_brokers_than_letters_have_two_letters() {
    let cluster = Cluster::builder().brokers(28).start().unwrap();
    let names = cluster.broker_names();
    assert_eq!(names[25..], ["broker-z", "broker-aa", "broker-ab"]);
    cluster.create_topic("T", 1).unwrap();
    assert_eq!(
        cluster.max_offset(&MessageQueue::new("T", "broker-ab", 0)),
        0
    );
}

//! Where the name servers come from, and what happens when the list changes.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking, and is outside of what loom models"
)]

mod support;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{env, thread};

use rocketmq_blocking::{
    DefaultMQProducer, DefaultMQProducerBuilder, Error, MQClientManager, Message, client_error_code,
};
use support::{FakePeer, cluster_of, library_threads, started, wait_until};

fn builder(group: &str) -> DefaultMQProducerBuilder {
    DefaultMQProducer::builder(group).client_manager(&MQClientManager::new())
}

/// How long a domain thinks before it answers.
const PAUSE: Duration = Duration::from_millis(200);

/// Answers each question with `list`, slowly, and keeps the first lines of what it has answered.
fn domain(list: String) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&asked);
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                if stream.read(&mut byte).unwrap_or(0) == 0 {
                    break;
                }
                request.push(byte[0]);
            }
            let text = String::from_utf8(request).unwrap();
            let line = text.lines().next().unwrap_or_default().to_owned();
            thread::sleep(PAUSE);
            kept.lock().unwrap().push(line);
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n{list}\nrest");
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    (addr, asked)
}

#[test]
fn a_domain_is_asked_at_the_start_and_its_answer_used() {
    let cluster = cluster_of(1, 1);
    let (addr, asked) = domain(cluster.namesrv_addr());
    let producer = started(
        builder("p")
            .namesrv_addr("")
            .namesrv_domain(addr)
            .namesrv_domain_subgroup("group")
            .unit_name("u"),
    );
    assert_eq!(
        *asked.lock().unwrap(),
        ["GET /rocketmq/group-u?nofix=1 HTTP/1.0"],
        "the start has waited for the answer"
    );
    producer.send(&Message::new("T", "m")).unwrap();
    assert!(producer.shutdown(Duration::from_secs(5)).threads_joined);
    wait_until("the asking thread has ended too", || {
        !library_threads().contains(&"NameServerAddre".to_owned())
    });
}

#[test]
fn a_list_that_is_given_is_used_and_the_domain_not_asked() {
    let cluster = cluster_of(1, 1);
    let (addr, asked) = domain("127.0.0.1:1".to_owned());
    let list = cluster.namesrv_addr();
    let producer = started(builder("p").namesrv_addr(&list).namesrv_domain(addr));
    producer.send(&Message::new("T", "m")).unwrap();
    assert!(asked.lock().unwrap().is_empty());
}

#[test]
fn a_domain_that_does_not_answer_leaves_a_client_without_name_servers_until_it_is_given_some() {
    let cluster = cluster_of(1, 1);
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr();
    let domain = closed.unwrap().to_string();
    let producer = started(builder("p").namesrv_addr("").namesrv_domain(domain));
    let error = producer.send(&Message::new("T", "m")).unwrap_err();
    assert!(
        matches!(error, Error::MQClient { code: Some(code), .. }
            if code == client_error_code::NO_NAME_SERVER_EXCEPTION),
        "{error:?}"
    );
    producer
        .update_name_server_address_list(&cluster.namesrv_addr())
        .unwrap();
    producer.send(&Message::new("T", "m")).unwrap();
    wait_until("nobody is asked any more", || {
        !library_threads().contains(&"NameServerAddre".to_owned())
    });
}

#[test]
fn an_update_without_the_server_in_use_leaves_it_at_once() {
    let cluster = cluster_of(1, 1);
    let broker = cluster.broker_addr("broker-a").unwrap();
    let before = FakePeer::name_server("broker-a", broker);
    let producer = started(builder("p").namesrv_addr(&before.addr()));
    producer.send(&Message::new("T", "m")).unwrap();
    assert_eq!(before.open_connections(), 1);

    let both = format!("{};{}", before.addr(), cluster.namesrv_addr());
    producer.update_name_server_address_list(&both).unwrap();
    producer.fetch_publish_message_queues("T").unwrap();
    assert_eq!(before.open_connections(), 1, "it is still in the list");

    let connections = cluster.connection_count();
    producer
        .update_name_server_address_list(&cluster.namesrv_addr())
        .unwrap();
    wait_until("the old one is left", || before.open_connections() == 0);
    producer.fetch_publish_message_queues("T").unwrap();
    assert_eq!(cluster.connection_count(), connections + 1);
    assert_eq!(before.connections(), 1);
}

#[test]
fn a_bad_update_changes_nothing() {
    let cluster = cluster_of(1, 1);
    let producer = started(builder("p").namesrv_addr(&cluster.namesrv_addr()));
    for list in ["", "host", "h:70000", "2001:db8::1"] {
        let error = producer.update_name_server_address_list(list).unwrap_err();
        assert!(
            matches!(error, Error::InvalidConfig { .. }),
            "{list}: {error:?}"
        );
    }
    producer.send(&Message::new("T", "m")).unwrap();
    producer.shutdown(Duration::from_secs(5));
    let error = producer
        .update_name_server_address_list(&cluster.namesrv_addr())
        .unwrap_err();
    assert!(matches!(error, Error::ServiceState { .. }), "{error:?}");
}

#[test]
fn an_instance_never_has_two_lists() {
    let cluster = cluster_of(1, 1);
    let manager = MQClientManager::new();
    let client = |group: &str, list: &str| {
        started(builder(group).client_manager(&manager).namesrv_addr(list))
    };
    let old = cluster.namesrv_addr();
    let new = format!("{old};127.0.0.1:1");
    let first = client("a", &old);
    first.update_name_server_address_list(&new).unwrap();
    let same = client("b", &new);
    assert_eq!(
        manager.instance_count(),
        1,
        "the list of today is what counts"
    );
    let other = client("c", &old);
    assert_eq!(manager.instance_count(), 2);
    assert_eq!(first.client_id(), same.client_id());
    assert_ne!(first.client_id(), other.client_id());
}

/// Runs as a process of its own by [`the_environment_names_the_servers`].
#[test]
#[ignore = "needs the environment that another test makes"]
fn child_of_the_environment() {
    let producer = started(builder("p"));
    producer.send(&Message::new("T", "from the child")).unwrap();
}

#[test]
fn the_environment_names_the_servers() {
    let cluster = cluster_of(1, 1);
    let mut child = Command::new(env::current_exe().unwrap());
    child.args(["--exact", "child_of_the_environment", "--ignored"]);
    child.env("NAMESRV_ADDR", cluster.namesrv_addr());
    let output = child.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(cluster.stored_count("T"), 1);

    child.env_remove("NAMESRV_ADDR");
    assert!(!child.output().unwrap().status.success());
    let error = builder("p").namesrv_addr("").build().unwrap_err();
    assert!(error.to_string().contains("NAMESRV_ADDR"), "{error}");
}

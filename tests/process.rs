//! What a client asks of the process it lives in: its threads' options, and its signals.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test is outside of what loom models, and fails by panicking"
)]

mod support;

use std::collections::BTreeSet;
use std::io::Write;
use std::net::{Shutdown, TcpListener};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rocketmq_blocking::service::ThreadOptions;
use rocketmq_blocking::{
    ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, ConsumeFromWhere, DefaultMQProducer,
    DefaultMQPushConsumer, MQClientManager, Message, MessageExt,
};
use rocketmq_embedded::Cluster;
use support::{FakePeer, wait_until};

const CHILD: &str = "ROCKETMQ_TEST_CHILD";

fn child(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([test, "--exact", "--ignored", "--test-threads=1"])
        .env(CHILD, "1");
    command
}

/// More than the 2 MiB that a thread has by default: 40 times 64 KiB, and in a debug build some
/// copies of each.
#[inline(never)]
fn use_stack(depth: usize) -> usize {
    let block = std::hint::black_box([depth; 8 * 1024]);
    let below = if depth < 40 { use_stack(depth + 1) } else { 0 };
    std::hint::black_box(block)[depth] + below
}

/// The options are the process's, so this is a process of its own.
#[test]
#[ignore = "runs in a child process, by the test below"]
fn with_thread_options() {
    assert!(std::env::var_os(CHILD).is_some(), "only as a child");
    let names: Arc<Mutex<BTreeSet<String>>> = Arc::default();
    let noted = Arc::clone(&names);
    ThreadOptions::new()
        .stack_size(16 * 1024 * 1024)
        .on_start(move |name| {
            noted.lock().unwrap().insert(name.to_owned());
            assert!(
                name != "PullMessageService",
                "a hook that panics costs nothing"
            );
        })
        .install();
    let cluster = Cluster::builder().start().unwrap();
    cluster.create_topic("T", 1).unwrap();
    let manager = MQClientManager::new();
    let done = Arc::new(Mutex::new(0));
    let counter = Arc::clone(&done);
    let consumer = DefaultMQPushConsumer::builder("g")
        .client_manager(&manager)
        .namesrv_addr(&cluster.namesrv_addr())
        .consume_from_where(ConsumeFromWhere::ConsumeFromFirstOffset)
        .subscribe("T", "*")
        .message_listener(
            move |_: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
                use_stack(0);
                *counter.lock().unwrap() += 1;
                ConsumeConcurrentlyStatus::ConsumeSuccess
            },
        )
        .build()
        .unwrap();
    consumer.start().unwrap();
    let producer = DefaultMQProducer::builder("p")
        .client_manager(&manager)
        .namesrv_addr(&cluster.namesrv_addr())
        .build()
        .unwrap();
    producer.start().unwrap();
    producer.send(&Message::new("T", "m")).unwrap();
    wait_until("the listener has used its stack", || {
        *done.lock().unwrap() == 1
    });
    let names = names.lock().unwrap().clone();
    for name in [
        "MioClientSelector",
        "RebalanceService",
        "PullMessageService",
        "HeartbeatService",
        "ConsumeMessageThread_g_1",
    ] {
        assert!(names.contains(name), "{name}: {names:?}");
    }
}

#[test]
fn threads_have_the_stack_and_the_hook_that_were_installed() {
    let output = child("with_thread_options").output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// A host that leaves SIGPIPE at its default is ended by a write to a closed connection, unless the
/// write says that it is not to be.
#[test]
#[ignore = "runs in a child process, by the test below"]
fn with_sigpipe_at_its_default() {
    assert!(std::env::var_os(CHILD).is_some(), "only as a child");
    sigpipe::reset();
    let broker = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = broker.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        // Each connection is closed with bytes unread, so that the next write meets a reset.
        for stream in broker.incoming().map_while(Result::ok) {
            std::thread::sleep(Duration::from_millis(1));
            let _ = stream.shutdown(Shutdown::Both);
        }
    });
    let name_server = FakePeer::name_server("fake", addr);
    let producer = DefaultMQProducer::builder("p")
        .client_manager(&MQClientManager::new())
        .namesrv_addr(&name_server.addr())
        .compress_msg_body_over_howmuch(usize::MAX)
        .build()
        .unwrap();
    producer.start().unwrap();
    let large = Message::new("T", vec![b'x'; 4 * 1024 * 1024]);
    for _ in 0..50 {
        producer.send(&large).unwrap_err();
    }
}

#[test]
fn a_host_with_sigpipe_at_its_default_lives() {
    let output = child("with_sigpipe_at_its_default").output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// What the test above would see if a write did not say it.
#[test]
#[ignore = "runs in a child process, by the test below"]
fn a_write_that_raises_sigpipe() {
    assert!(std::env::var_os(CHILD).is_some(), "only as a child");
    sigpipe::reset();
    let mut nobody = Command::new("true").stdin(Stdio::piped()).spawn().unwrap();
    let mut writer = nobody.stdin.take().unwrap();
    nobody.wait().unwrap();
    let _ = writer.write(b"x");
}

#[test]
fn the_signal_is_really_at_its_default_in_such_a_host() {
    use std::os::unix::process::ExitStatusExt;
    const SIGPIPE: i32 = 13;
    let output = child("a_write_that_raises_sigpipe").output().unwrap();
    assert_eq!(output.status.signal(), Some(SIGPIPE), "{output:?}");
}

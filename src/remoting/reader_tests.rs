//! Callers that read their connection themselves, over real sockets.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use bytes::BytesMut;
use rocketmq_protocol::{FrameDecoder, RemotingCommand};

use super::reports::{GENEROUS, World, echo, read_requests, request, server};
use super::request_processor::RequestProcessor;
use super::rpc_hook::{RPCHook, RpcHookRef};
use crate::client_config::ClientConfig;
use crate::error::{Error, Result};
use crate::sync::channel::{Receiver, Sender, unbounded};
use crate::sync::{Arc, Deadline, Weak, now, thread};

type Told = Receiver<Result<RemotingCommand>>;

impl World {
    /// A call on a thread of its own.
    fn call(&self, addr: &str, body: impl Into<String>, timeout: Duration) -> Told {
        let (client, addr, body) = (Arc::clone(&self.client), addr.to_owned(), body.into());
        let (tell, told) = unbounded();
        thread::spawn("caller", move || {
            let deadline = Deadline::after(timeout);
            let _ = tell.send(client.invoke_sync(&addr, request(&body), deadline));
        })
        .unwrap();
        told
    }

    fn call_async(&self, addr: &str, body: &str) -> Told {
        let (tell, told) = unbounded();
        let deadline = Deadline::after(GENEROUS);
        self.client
            .invoke_async(addr, request(body), deadline, move |outcome| {
                tell.send(outcome).unwrap();
            });
        told
    }

    /// Connected, with the server's end of it. Until the first reply nobody but the event loop reads.
    fn connected(&self) -> (String, TcpStream) {
        let (addr, accepted) = server();
        let first = self.call(&addr, "first", GENEROUS);
        let mut stream = accepted.recv_timeout(GENEROUS).unwrap();
        serve(&mut stream, "first");
        assert_body(&first, "first");
        (addr, stream)
    }

    fn wait_until_led(&self, addr: &str) {
        wait_until("a caller reads", || self.client.is_led(addr));
    }

    fn wait_until_in_loop(&self, addr: &str) {
        wait_until("the loop reads", || self.client.is_in_loop(addr));
    }

    /// A caller that reads the connection until it is answered, and its request.
    fn leader(&self, addr: &str, stream: &mut TcpStream) -> (Told, RemotingCommand) {
        let leader = self.call(addr, "leader", GENEROUS);
        let held = next_request(stream, "leader");
        self.wait_until_led(addr);
        (leader, held)
    }

    /// Has callers come and go until the last one has left the socket to nobody.
    fn leave_it_to_nobody(&self, addr: &str, stream: &mut TcpStream) {
        let deadline = Deadline::after(GENEROUS);
        while self.client.is_in_loop(addr) {
            assert!(!deadline.has_passed(), "callers never stay near each other");
            for _ in 0..2 {
                let call = self.client.start_call(addr, request("again")).unwrap();
                serve(stream, "again");
                call.wait(deadline).unwrap();
            }
        }
    }
}

#[track_caller]
fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let (_never, pause) = unbounded::<()>();
    let deadline = Deadline::after(GENEROUS);
    while !condition() {
        assert!(!deadline.has_passed(), "in vain until {what}");
        let _ = pause.recv_timeout(Duration::from_micros(100));
    }
}

#[track_caller]
fn next_request(stream: &mut TcpStream, body: &str) -> RemotingCommand {
    let request = read_requests(stream, 1).0.remove(0);
    assert_eq!(request.body_bytes(), body.as_bytes());
    request
}

#[track_caller]
fn serve(stream: &mut TcpStream, body: &str) {
    let request = next_request(stream, body);
    echo(stream, &request);
}

#[track_caller]
fn assert_body(told: &Told, body: &str) {
    let reply = told.recv_timeout(GENEROUS).expect("it ends").unwrap();
    assert_eq!(reply.body_bytes(), body.as_bytes());
}

fn frame(command: &RemotingCommand) -> BytesMut {
    let mut frame = BytesMut::new();
    command.encode(&mut frame).unwrap();
    frame
}

/// Answers every request with its own body; those that come together in reverse order.
fn echo_backwards(mut stream: TcpStream) {
    let mut decoder = FrameDecoder::default();
    let mut chunk = [0; 64 * 1024];
    while let Ok(length @ 1..) = stream.read(&mut chunk) {
        decoder.extend(&chunk[..length]);
        let requests = std::iter::from_fn(|| decoder.next_command().unwrap());
        let mut requests: Vec<_> = requests.collect();
        requests.reverse();
        for request in &requests {
            echo(&mut stream, request);
        }
    }
}

#[test]
fn threads_that_share_a_connection_get_their_own_replies() {
    const THREADS: usize = 8;
    const CALLS: usize = 3000;
    let world = World::start();
    let (addr, accepted) = server();
    let (tell, told) = unbounded();
    for caller in 0..THREADS {
        let (client, addr, tell) = (Arc::clone(&world.client), addr.clone(), tell.clone());
        thread::spawn("caller", move || {
            let wrong = (0..CALLS).find_map(|call| {
                let body = format!("{call} of {caller}");
                let deadline = Deadline::after(GENEROUS);
                let reply = client.invoke_sync(&addr, request(&body), deadline);
                match &reply {
                    Ok(right) if right.body_bytes() == body.as_bytes() => None,
                    _ => Some((body, reply)),
                }
            });
            tell.send(wrong).unwrap();
        })
        .unwrap();
    }
    let stream = accepted.recv_timeout(GENEROUS).unwrap();
    thread::spawn("server", move || echo_backwards(stream)).unwrap();
    for _ in 0..THREADS {
        assert_eq!(told.recv_timeout(GENEROUS * 2).unwrap(), None);
    }
    assert!(accepted.try_recv().is_err(), "one connection");
    assert_eq!(world.client.under_way(&addr), (0, 0));
    world.wait_until_in_loop(&addr);
    world.end();
}

/// A leader has its reply and goes; of those that it leaves behind one reads on for all.
#[test]
fn a_leader_with_its_reply_makes_a_follower_the_leader() {
    const FOLLOWERS: usize = 5;
    let world = World::start();
    let (addr, mut stream) = world.connected();
    let (leader, held) = world.leader(&addr, &mut stream);
    let followers: Vec<_> = (0..FOLLOWERS)
        .map(|follower| {
            let body = follower.to_string();
            let told = world.call(&addr, &body, GENEROUS);
            (told, next_request(&mut stream, &body))
        })
        .collect();
    echo(&mut stream, &held);
    assert_body(&leader, "leader");
    for (follower, (told, held)) in followers.iter().enumerate() {
        world.wait_until_led(&addr);
        echo(&mut stream, held);
        assert_body(told, &follower.to_string());
    }
    world.wait_until_in_loop(&addr);
    assert!(!world.client.is_led(&addr));
    world.end();
}

/// Whose connections outlast calls without an answer.
fn patient() -> World {
    World::start_with(ClientConfig {
        close_socket_if_timeout: false,
        ..ClientConfig::default()
    })
}

/// The leader's reply never comes, but others all the time.
#[test]
fn a_leader_leaves_at_its_deadline_whatever_comes() {
    let world = patient();
    let (addr, mut stream) = world.connected();
    let leader = world.call(&addr, "silence", Duration::from_millis(300));
    next_request(&mut stream, "silence");
    world.wait_until_led(&addr);
    let follower = world.call(&addr, "follower", GENEROUS);
    let held = next_request(&mut stream, "follower");
    // Replies to calls that nobody makes: there is always something to be read.
    let nobody = RemotingCommand::response(&request("x"), 0, None).with_body(vec![0; 1000]);
    let unasked = frame(&nobody).repeat(50);
    let limit = Deadline::after(GENEROUS);
    let outcome = loop {
        stream.write_all(&unasked).unwrap();
        if let Ok(outcome) = leader.try_recv() {
            break outcome;
        }
        assert!(!limit.has_passed(), "it waits for ever");
    };
    let error = outcome.unwrap_err();
    assert!(matches!(error, Error::RemotingTimeout { .. }), "{error:?}");
    echo(&mut stream, &held);
    assert_body(&follower, "follower");
    world.wait_until_in_loop(&addr);
    world.end();
}

#[test]
fn followers_are_served_and_one_leads_when_the_leader_s_time_is_up() {
    let world = patient();
    let (addr, mut stream) = world.connected();
    let leader = world.call(&addr, "silence", Duration::from_millis(300));
    next_request(&mut stream, "silence");
    world.wait_until_led(&addr);
    for number in 0..20 {
        let body = number.to_string();
        let follower = world.call(&addr, &body, GENEROUS);
        serve(&mut stream, &body);
        assert_body(&follower, &body);
    }
    let follower = world.call(&addr, "follower", GENEROUS);
    let held = next_request(&mut stream, "follower");
    let error = leader.recv_timeout(GENEROUS).unwrap().unwrap_err();
    assert!(matches!(error, Error::RemotingTimeout { .. }), "{error:?}");
    world.wait_until_led(&addr);
    echo(&mut stream, &held);
    assert_body(&follower, "follower");
    world.wait_until_in_loop(&addr);
    world.end();
}

#[derive(Debug)]
struct Notes(Sender<String>);

impl RequestProcessor for Notes {
    fn process_request(&self, _: &str, request: RemotingCommand) -> Option<RemotingCommand> {
        let body = String::from_utf8_lossy(request.body_bytes()).into_owned();
        self.0.send(body).unwrap();
        Some(RemotingCommand::response(&request, 0, None))
    }
}

/// Sends a note, which is seen and answered.
#[track_caller]
fn send_note(stream: &mut TcpStream, notes: &Receiver<String>, body: &str) {
    stream.write_all(&frame(&request(body))).unwrap();
    assert_eq!(notes.recv_timeout(GENEROUS).expect("it is seen"), body);
    let (answer, _) = read_requests(stream, 1);
    assert!(answer[0].is_response());
}

#[test]
fn notes_and_callbacks_come_through_while_callers_read_and_afterwards() {
    let world = World::start();
    let (saw, notes) = unbounded();
    let processor: Arc<dyn RequestProcessor> = Arc::new(Notes(saw));
    let weak: Weak<dyn RequestProcessor> = Arc::downgrade(&processor);
    world.client.register_processor(weak);
    let (addr, mut stream) = world.connected();
    for _ in 0..20 {
        let (leader, held) = world.leader(&addr, &mut stream);
        let callback = world.call_async(&addr, "while led");
        serve(&mut stream, "while led");
        assert_body(&callback, "while led");
        send_note(&mut stream, &notes, "note");
        assert!(world.client.is_led(&addr), "all of that came by a caller");
        echo(&mut stream, &held);
        assert_body(&leader, "leader");

        world.leave_it_to_nobody(&addr, &mut stream);
        send_note(&mut stream, &notes, "later note");
        world.leave_it_to_nobody(&addr, &mut stream);
        let callback = world.call_async(&addr, "later");
        assert!(
            world.client.is_in_loop(&addr),
            "it does not wait for a timer"
        );
        serve(&mut stream, "later");
        assert_body(&callback, "later");
    }
    world.end();
}

/// A callback that is pending when the last caller leaves is not left to a timer.
#[test]
fn a_caller_that_leaves_a_callback_behind_gives_the_socket_back_at_once() {
    let world = World::start();
    let (addr, mut stream) = world.connected();
    let callback = world.call_async(&addr, "pending");
    let held = next_request(&mut stream, "pending");
    let deadline = Deadline::after(GENEROUS);
    for _ in 0..50 {
        let call = world.client.start_call(&addr, request("call")).unwrap();
        serve(&mut stream, "call");
        call.wait(deadline).unwrap();
        assert!(world.client.is_in_loop(&addr));
    }
    echo(&mut stream, &held);
    assert_body(&callback, "pending");
    world.end();
}

#[track_caller]
fn assert_all_fail(calls: &[Told], reason: &str) {
    for call in calls {
        let error = call.recv_timeout(GENEROUS).expect("it ends").unwrap_err();
        let is_end = matches!(error, Error::RemotingSendRequest { .. });
        assert!(is_end && error.to_string().contains(reason), "{error:?}");
    }
}

fn all_pending_calls(world: &World, addr: &str, stream: &mut TcpStream) -> Vec<Told> {
    let (leader, _) = world.leader(addr, stream);
    let mut calls = vec![leader];
    calls.extend((0..4).map(|call| world.call(addr, call.to_string(), GENEROUS * 2)));
    calls.push(world.call_async(addr, "async"));
    read_requests(stream, 5);
    calls
}

#[test]
fn a_server_that_closes_ends_all_calls_while_one_of_them_reads() {
    let world = World::start();
    for _ in 0..10 {
        let (addr, mut stream) = world.connected();
        let calls = all_pending_calls(&world, &addr, &mut stream);
        drop(stream);
        assert_all_fail(&calls, "the server closed the connection");
    }
    world.end();
}

#[test]
fn garbage_that_a_caller_reads_ends_all_calls() {
    let world = World::start();
    let (addr, mut stream) = world.connected();
    let calls = all_pending_calls(&world, &addr, &mut stream);
    stream.write_all(b"HTTP/1.1 400 Bad Request\r\n").unwrap();
    for call in &calls {
        let error = call.recv_timeout(GENEROUS).expect("it ends").unwrap_err();
        assert!(error.to_string().contains("cannot be read"), "{error:?}");
    }
    world.end();
}

#[test]
fn a_shutdown_ends_the_wait_of_a_caller_that_reads() {
    let world = World::start();
    let (addr, mut stream) = world.connected();
    let calls = all_pending_calls(&world, &addr, &mut stream);
    world.end();
    assert_all_fail(&calls, "the client is shut down");
}

#[test]
fn the_end_of_the_event_loop_ends_the_wait_of_a_caller_that_reads() {
    let world = World::start();
    let (addr, mut stream) = world.connected();
    let calls = all_pending_calls(&world, &addr, &mut stream);
    assert!(world.event_loop.shutdown(Deadline::after(GENEROUS)));
    assert_all_fail(&calls, "the client is shut down");
    world.end();
}

/// The silence of one call ends the connection; who reads it at the time is told too.
#[test]
fn a_close_on_silence_reaches_the_caller_that_reads() {
    let world = World::start();
    let (addr, mut stream) = world.connected();
    let (leader, _) = world.leader(&addr, &mut stream);
    let impatient = world.call(&addr, "impatient", Duration::from_millis(200));
    let error = impatient.recv_timeout(GENEROUS).unwrap().unwrap_err();
    assert!(matches!(error, Error::RemotingTimeout { .. }), "{error:?}");
    assert_all_fail(&[leader], "closed after a silence");
    world.end();
}

/// What the socket does not take goes out by the event loop, whoever reads meanwhile.
#[test]
fn a_big_request_goes_out_while_a_caller_reads() {
    const BIG: usize = 14 * 1024 * 1024;
    let world = World::start();
    let (addr, mut stream) = world.connected();
    let (leader, held) = world.leader(&addr, &mut stream);
    let body = "b".repeat(BIG);
    let big = world.call(&addr, &body, GENEROUS * 2);
    let small = world.call_async(&addr, "small");
    // Both are read slowly, and replies come in between.
    let mut decoder = FrameDecoder::default();
    let mut chunk = [0; 16 * 1024];
    let mut requests = Vec::new();
    let unasked = frame(&RemotingCommand::response(&request("x"), 0, None));
    while requests.len() < 2 {
        let length = stream.read(&mut chunk).unwrap();
        decoder.extend(&chunk[..length]);
        requests.extend(std::iter::from_fn(|| decoder.next_command().unwrap()));
        stream.write_all(&unasked).unwrap();
    }
    assert!(world.client.is_led(&addr));
    for request in &requests {
        let mut frame = BytesMut::new();
        let length = request.body_bytes().len().to_string();
        RemotingCommand::response(request, 0, None)
            .with_body(length)
            .encode(&mut frame)
            .unwrap();
        stream.write_all(&frame).unwrap();
    }
    assert_body(&big, &BIG.to_string());
    assert_body(&small, "5");
    echo(&mut stream, &held);
    assert_body(&leader, "leader");
    world.wait_until_in_loop(&addr);
    world.end();
}

#[test]
fn replies_that_trickle_in_are_put_together_across_leaders() {
    let world = World::start();
    let (addr, mut stream) = world.connected();
    stream.set_nodelay(true).unwrap();
    let calls: Vec<_> = (0..4)
        .map(|call| {
            let body = format!("call {call}");
            let told = world.call(&addr, &body, GENEROUS);
            (told, next_request(&mut stream, &body), body)
        })
        .collect();
    // A leader leaves in the middle of the next reply.
    let replies = calls.iter().rev().map(|(_, request, body)| {
        frame(&RemotingCommand::response(request, 0, None).with_body(body.clone()))
    });
    let bytes = replies.collect::<Vec<_>>().concat();
    for byte in bytes {
        stream.write_all(&[byte]).unwrap();
    }
    for (told, _, body) in &calls {
        assert_body(told, body);
    }
    world.end();
}

/// Says on which threads it was called.
struct Names(Sender<String>);

impl RPCHook for Names {
    fn do_before_request(&self, _: &str, _: &mut RemotingCommand) {}

    fn do_after_response(&self, _: &str, request: &RemotingCommand, _: &RemotingCommand) {
        let of = String::from_utf8_lossy(request.body_bytes()).into_owned();
        let line = format!("{of} on {}", thread::current_name());
        self.0.send(line).unwrap();
    }
}

#[test]
fn the_hook_of_one_call_does_not_run_on_the_thread_of_another() {
    let (tell, told) = unbounded();
    let world = World::start_with(ClientConfig {
        rpc_hook: Some(RpcHookRef::new(Arc::new(Names(tell)))),
        ..ClientConfig::default()
    });
    let (addr, mut stream) = world.connected();
    assert_eq!(told.recv_timeout(GENEROUS).unwrap(), "first on caller");
    let (leader, held) = world.leader(&addr, &mut stream);
    let (tell, landed) = unbounded();
    let deadline = Deadline::after(GENEROUS);
    world
        .client
        .invoke_directly(&addr, request("heartbeat"), deadline, move |outcome| {
            tell.send(outcome).unwrap();
        });
    serve(&mut stream, "heartbeat");
    assert_body(&landed, "heartbeat");
    assert_eq!(
        told.recv_timeout(GENEROUS).unwrap(),
        "heartbeat on RPCHookExecutor_1"
    );
    assert!(world.client.is_led(&addr), "a caller has read that");
    echo(&mut stream, &held);
    assert_body(&leader, "leader");
    assert_eq!(told.recv_timeout(GENEROUS).unwrap(), "leader on caller");
    world.end();
}

/// Calls that are started side by side are waited for one after the other.
#[test]
fn a_reply_that_came_before_anyone_waited_is_there() {
    let world = World::start();
    let (addr, mut stream) = world.connected();
    for _ in 0..20 {
        world.leave_it_to_nobody(&addr, &mut stream);
        let calls = ["one", "two", "three"]
            .map(|body| world.client.start_call(&addr, request(body)).unwrap());
        let (requests, _) = read_requests(&mut stream, 3);
        for request in requests.iter().rev() {
            echo(&mut stream, request);
        }
        let begun = now();
        for (call, body) in calls.into_iter().zip(["one", "two", "three"]) {
            let reply = call.wait(Deadline::at(begun + GENEROUS)).unwrap();
            assert_eq!(reply.body_bytes(), body.as_bytes());
        }
    }
    world.end();
}

/// Pauses around the time that the event loop takes the socket back after, with callbacks between.
#[test]
fn calls_with_pauses_between_them_lose_no_reply() {
    const THREADS: u64 = 3;
    const CALLS: u64 = 300;
    let world = World::start();
    let (addr, accepted) = server();
    let (tell, told) = unbounded();
    for caller in 1..=THREADS {
        let (client, addr, tell) = (Arc::clone(&world.client), addr.clone(), tell.clone());
        thread::spawn("caller", move || {
            let (_never, pause) = unbounded::<()>();
            for call in 0..CALLS {
                let _ = pause.recv_timeout(Duration::from_micros(call * 7919 * caller % 3500));
                let deadline = Deadline::after(GENEROUS);
                if (call + caller) % 7 == 0 {
                    let tell = tell.clone();
                    client.invoke_async(&addr, request("c"), deadline, move |outcome| {
                        tell.send(outcome.is_ok()).unwrap();
                    });
                } else {
                    let outcome = client.invoke_sync(&addr, request("c"), deadline);
                    tell.send(outcome.is_ok()).unwrap();
                }
            }
        })
        .unwrap();
    }
    let stream = accepted.recv_timeout(GENEROUS).unwrap();
    thread::spawn("server", move || echo_backwards(stream)).unwrap();
    for _ in 0..THREADS * CALLS {
        assert_eq!(told.recv_timeout(GENEROUS / 2), Ok(true));
    }
    world.wait_until_in_loop(&addr);
    world.end();
}

//! Public bug reports about pending calls that can only be looked at from inside, each with its right
//! outcome.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use bytes::BytesMut;
use rocketmq_protocol::{FrameDecoder, RemotingCommand};

use super::event_loop::EventLoop;
use super::mio_remoting_client::MioRemotingClient;
use super::permits::Permits;
use super::response_future::{ResponseFuture, ResponseTable, Waiter, wait_or_withdraw};
use crate::client_config::ClientConfig;
use crate::error::Error;
use crate::service::ThreadPool;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::channel::{Receiver, unbounded};
use crate::sync::{Arc, Deadline, add, now, thread};

pub(super) const GENEROUS: Duration = Duration::from_secs(60);
const CALLS: usize = 100_000;

/// apache/rocketmq#10575 and alibaba/rocketmq#85: a reply that came as the time was up was dropped by
/// the one side and taken for lost by the other. Either the reply or the time-out has a call, and
/// whoever has it has taken it out of the table first.
#[test]
fn b67_a_reply_at_the_deadline_is_either_a_reply_or_a_timeout() {
    const BATCH: usize = 100;
    let table = Arc::new(ResponseTable::new());
    let (batches, to_answer) = unbounded::<(i32, Deadline)>();
    let answering = Arc::clone(&table);
    let (report, answered) = unbounded();
    let replier = thread::spawn("replier", move || {
        let mut taken = 0;
        while let Ok((first, deadline)) = to_answer.recv() {
            // From 50 us before the deadline to 50 us after it.
            let begin = deadline.instant() - Duration::from_micros(50);
            for call in 0..BATCH {
                let at = add(begin, Duration::from_micros(call as u64));
                while now() < at {
                    std::hint::spin_loop();
                }
                let opaque = first + call as i32;
                if let Some(waiter) = answering.take(opaque) {
                    waiter.complete(Ok(opaque));
                    taken += 1;
                }
            }
        }
        report.send(taken).unwrap();
    })
    .unwrap();
    let (mut replies, mut timeouts) = (0, 0);
    for first in (0..CALLS).step_by(BATCH) {
        let calls: Vec<_> = (first..first + BATCH)
            .map(|opaque| {
                let future = ResponseFuture::new();
                table.insert(opaque as i32, Waiter::Future(future.clone()));
                (opaque as i32, future)
            })
            .collect();
        let deadline = Deadline::after(Duration::from_micros(500));
        batches.send((first as i32, deadline)).unwrap();
        for (opaque, future) in calls {
            let grace = Deadline::after(GENEROUS);
            match wait_or_withdraw(&table, opaque, &future, || future.wait(deadline), grace) {
                Some(Ok(reply)) => {
                    assert_eq!(reply, opaque);
                    replies += 1;
                }
                Some(Err(error)) => panic!("{error}"),
                None => timeouts += 1,
            }
        }
    }
    drop(batches);
    assert!(replier.join_until(Deadline::after(GENEROUS)));
    assert_eq!(table.len(), 0);
    assert_eq!(replies + timeouts, CALLS);
    assert_eq!(answered.recv(), Ok(replies), "what was taken was received");
    assert!(
        replies > 0 && timeouts > 0,
        "{replies} replies, {timeouts} time-outs"
    );
}

/// The same reports, for asynchronous calls: each callback runs once, and every permit comes back.
#[test]
fn b67_reply_and_timeout_race_for_a_callback_and_it_runs_once() {
    const BATCH: usize = 1000;
    let table = Arc::new(ResponseTable::new());
    let permits = Permits::new(BATCH);
    let ran: Arc<Vec<AtomicUsize>> = Arc::new((0..CALLS).map(|_| AtomicUsize::new(0)).collect());
    for first in (0..CALLS).step_by(BATCH) {
        for call in first..first + BATCH {
            let permit = permits
                .try_acquire()
                .expect("those of the last batch are back");
            let ran = Arc::clone(&ran);
            let completion = move |_| {
                drop(permit);
                ran[call].fetch_add(1, Ordering::SeqCst);
            };
            table.insert(call as i32, Waiter::Callback(Box::new(completion)));
        }
        let racers = ["replies", "timeouts"].map(|name| {
            let table = Arc::clone(&table);
            let outcome = match name {
                "replies" => Ok(()),
                _ => Err(Error::client(0, "its time was up")),
            };
            thread::spawn(name, move || {
                for call in first..first + BATCH {
                    if let Some(waiter) = table.take(call as i32) {
                        waiter.complete(outcome.clone());
                    }
                }
            })
            .unwrap()
        });
        for racer in racers {
            assert!(racer.join_until(Deadline::after(GENEROUS)));
        }
        assert_eq!((table.len(), permits.free()), (0, BATCH));
    }
    assert!(ran.iter().all(|times| times.load(Ordering::SeqCst) == 1));
}

/// A client, its event loop, and the threads of its callbacks.
pub(super) struct World {
    pub(super) event_loop: Arc<EventLoop>,
    executor: Arc<ThreadPool>,
    pub(super) client: Arc<MioRemotingClient>,
}

impl World {
    pub(super) fn start() -> Self {
        Self::start_with(ClientConfig::default())
    }

    pub(super) fn start_with(config: ClientConfig) -> Self {
        let event_loop = Arc::new(EventLoop::start("test").unwrap());
        let executor = Arc::new(ThreadPool::new("callbacks", 2));
        let config = ClientConfig {
            namesrv_addr: Vec::new(),
            connect_timeout: GENEROUS,
            channel_max_idle_time: GENEROUS,
            ..config
        };
        let client =
            MioRemotingClient::new(Arc::clone(&event_loop), Arc::clone(&executor), &config);
        Self {
            event_loop,
            executor,
            client: Arc::new(client),
        }
    }

    pub(super) fn end(self) {
        assert!(self.client.close(Deadline::after(GENEROUS)));
        assert!(self.event_loop.shutdown(Deadline::after(GENEROUS)));
        assert_eq!(self.executor.shutdown(Deadline::after(GENEROUS)).left, 0);
    }
}

pub(super) fn request(body: &str) -> RemotingCommand {
    RemotingCommand::request_without_header(1).with_body(body.to_owned())
}

/// A server that hands its connection over once there is one.
pub(super) fn server() -> (String, Receiver<TcpStream>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    let (accepted, stream) = unbounded();
    thread::spawn("server", move || {
        for stream in listener.incoming().map_while(Result::ok) {
            if accepted.send(stream).is_err() {
                return;
            }
        }
    })
    .unwrap();
    (addr, stream)
}

/// Reads so many requests, and the bytes they came in.
pub(super) fn read_requests(
    stream: &mut TcpStream,
    count: usize,
) -> (Vec<RemotingCommand>, Vec<u8>) {
    stream.set_read_timeout(Some(GENEROUS)).unwrap();
    let mut decoder = FrameDecoder::default();
    let (mut requests, mut bytes) = (Vec::new(), Vec::new());
    let mut chunk = [0; 64 * 1024];
    while requests.len() < count {
        let length = stream.read(&mut chunk).unwrap();
        assert!(length > 0, "the connection ended");
        bytes.extend_from_slice(&chunk[..length]);
        decoder.extend(&chunk[..length]);
        while let Some(request) = decoder.next_command().unwrap() {
            requests.push(request);
        }
    }
    (requests, bytes)
}

/// Answers with the request's own body.
pub(super) fn echo(stream: &mut TcpStream, request: &RemotingCommand) {
    let mut frame = BytesMut::new();
    RemotingCommand::response(request, 0, None)
        .with_body(request.body.clone().unwrap())
        .encode(&mut frame)
        .unwrap();
    stream.write_all(&frame).unwrap();
}

/// Makes calls side by side with numbers from `first` on, answers them backwards, and returns their
/// numbers in the order in which they were given, and the bytes.
fn numbers_from(first: i32) -> (Vec<i32>, Vec<u8>) {
    const PARALLEL: usize = 4;
    let world = World::start();
    world.event_loop.shared().set_next_opaque(first);
    let (addr, accepted) = server();
    let callers: Vec<_> = (0..PARALLEL)
        .map(|caller| {
            let (client, addr) = (Arc::clone(&world.client), addr.clone());
            let (tell, told) = unbounded();
            thread::spawn("caller", move || {
                let body = format!("of {caller}");
                let deadline = Deadline::after(GENEROUS);
                let reply = client.invoke_sync(&addr, request(&body), deadline);
                tell.send((body, reply)).unwrap();
            })
            .unwrap();
            told
        })
        .collect();
    let mut stream = accepted.recv().unwrap();
    let (mut requests, bytes) = read_requests(&mut stream, PARALLEL);
    for request in requests.iter().rev() {
        echo(&mut stream, request);
    }
    for told in callers {
        let (body, reply) = told.recv_timeout(GENEROUS).unwrap();
        assert_eq!(reply.unwrap().body_bytes(), body.as_bytes());
    }
    world.end();
    requests.sort_by_key(|request| request.opaque.wrapping_sub(first));
    let numbers = requests.iter().map(|request| request.opaque);
    (numbers.collect(), bytes)
}

/// apache/rocketmq-client-cpp#84 and apache/rocketmq#6979: two requests had one number, and replies
/// crossed. Numbers differ, over the largest one too, and negative ones are written as they are.
#[test]
fn b68_numbers_of_calls_differ_beyond_the_largest_one() {
    let (numbers, bytes) = numbers_from(2_147_483_646);
    assert_eq!(
        numbers,
        [2_147_483_646, 2_147_483_647, -2_147_483_648, -2_147_483_647]
    );
    let text = String::from_utf8_lossy(&bytes);
    assert!(text.contains(r#""opaque":-2147483648"#), "{text}");
}

/// apache/rocketmq#10832: a reply without a number reads as one with 0, so no call has that one.
#[test]
fn b64_no_call_has_the_number_of_replies_without_one() {
    assert_eq!(numbers_from(-2).0, [-2, -1, 1, 2]);
    assert_eq!(numbers_from(0).0, [1, 2, 3, 4]);
}

/// apache/rocketmq-client-go#646 and apache/rocketmq#8250: calls that are never answered stayed in
/// the table for ever. They end when their time is up, and nothing of them is left; replies that come
/// then are passed over.
#[test]
fn b69_calls_that_are_never_answered_leave_nothing() {
    const ASYNC_CALLS: usize = 10_000;
    let world = World::start();
    let (addr, accepted) = server();
    let (ended, outcomes) = unbounded();
    let deadline = Deadline::after(Duration::from_millis(200));
    for _ in 0..ASYNC_CALLS {
        let ended = ended.clone();
        world
            .client
            .invoke_async(&addr, request("m"), deadline, move |outcome| {
                ended.send(outcome).unwrap();
            });
    }
    let mut stream = accepted.recv_timeout(GENEROUS).unwrap();
    let mut timeouts = 0;
    for _ in 0..ASYNC_CALLS {
        match outcomes.recv_timeout(GENEROUS).unwrap() {
            Err(Error::RemotingTimeout { .. }) => timeouts += 1,
            // The connect itself may have taken that long.
            Err(Error::RemotingConnect { .. }) => {}
            other => panic!("{other:?}"),
        }
    }
    assert!(outcomes.try_recv().is_err(), "each ends once");
    assert_eq!(world.client.under_way(&addr), (0, 0));
    assert_eq!(world.event_loop.shared().call_timers(), 0);

    let (late, _) = read_requests(&mut stream, timeouts);
    for request in &late {
        echo(&mut stream, request);
    }
    let client = Arc::clone(&world.client);
    let (tell, told) = unbounded();
    thread::spawn("caller", move || {
        let reply = client.invoke_sync(&addr, request("last"), Deadline::after(GENEROUS));
        tell.send(reply).unwrap();
    })
    .unwrap();
    let (last, _) = read_requests(&mut stream, 1);
    echo(&mut stream, &last[0]);
    let reply = told.recv_timeout(GENEROUS).unwrap().unwrap();
    assert_eq!(reply.body_bytes(), b"last");
    assert!(accepted.try_recv().is_err(), "on the same connection");
    world.end();
}

/// The same reports: a connection that breaks, and one that cannot be written to any more.
#[test]
fn b69_calls_on_a_connection_that_breaks_leave_nothing() {
    const CALLS: usize = 4000;
    let world = World::start();
    let (addr, accepted) = server();
    let (ended, outcomes) = unbounded();
    let call = || {
        let ended = ended.clone();
        let deadline = Deadline::after(GENEROUS * 10);
        world
            .client
            .invoke_async(&addr, request("m"), deadline, move |outcome| {
                ended.send(outcome).unwrap();
            });
    };
    thread::spawn("closing", move || {
        while let Ok(mut stream) = accepted.recv() {
            // What is left unread makes it a reset, which meets callers in the middle of a write.
            let _ = stream.read(&mut [0; 100]);
        }
    })
    .unwrap();
    for _ in 0..CALLS {
        call();
    }
    for _ in 0..CALLS {
        let outcome = outcomes.recv_timeout(GENEROUS).unwrap();
        let error = outcome.unwrap_err();
        assert!(error.is_retryable(), "{error:?}");
    }
    assert!(outcomes.try_recv().is_err(), "each ends once");
    assert_eq!(world.client.under_way(&addr), (0, 0));
    assert_eq!(world.event_loop.shared().call_timers(), 0);
    world.end();
}

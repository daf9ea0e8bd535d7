//! Who reads a connection's socket: the event loop, or one of the callers that wait for a reply.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::time::{Duration, Instant};

use super::response_future::{ResponseFuture, Woken};
use crate::error::Result;
use crate::sync::{Deadline, Mutex, add};

/// How long the event loop stays without the socket after the last of several callers, at least; at
/// most until its next look. Also: how late a caller may come to count as one of several.
pub(super) const LINGER: Duration = Duration::from_millis(2);
/// When to look again if callers have not ceased: each look wakes the event loop.
const NEXT_LOOK: Duration = Duration::from_millis(16);

/// Who reads, and who is next.
///
/// A caller that waits for its reply reads the socket itself if nobody else does, and completes the
/// calls of others on its way: its reply then needs no second thread. One reads, the leader; the
/// others follow, each asleep on its own [`ResponseFuture`]. A leader that has its reply, or whose
/// time is up, makes one follower the leader, or gives the socket back to the event loop.
///
/// The event loop does not hear of input while callers read (`watch.input` is off). A single call
/// gives the socket back at its end. Of several in a row, less than [`LINGER`] apart, none does:
/// the loop takes it back by a timer once they have ceased. Nobody reads in that gap, in which no
/// call waits either: a callback in the response table rules the gap out.
///
/// What makes it right:
///
/// * A call is in the response table before its frame is sent and before it asks for the role, so
///   whoever reads the reply finds it.
/// * A follower is in `followers` from the moment it finds the role taken, under the same lock; so
///   whoever gives the role up sees it.
/// * A follower that leaves and is not in `followers` any more has been made the leader meanwhile,
///   and hands the role on although it has not used it.
/// * Telling the loop of a socket reports what is there to be read already.
pub(super) struct ReaderRole<T> {
    state: Mutex<State<T>>,
}

struct State<T> {
    holder: Holder,
    /// What the event loop is told of.
    watch: Watch,
    /// Callers that wait while another thread reads, by their opaques. Only while there is a holder.
    followers: BTreeMap<i32, ResponseFuture<T>>,
    /// When a caller last gave the role up.
    last_left: Option<Instant>,
    /// Whether a timer of the event loop is going to look whether callers have ceased. True whenever
    /// nobody holds the role and the loop is not told of input.
    timer_is_set: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holder {
    Nobody,
    /// It reads, or it is connecting.
    EventLoop,
    Caller,
    /// Nobody will read any more.
    Ended,
}

/// What of a socket the event loop is told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Watch {
    pub(super) input: bool,
    pub(super) output: bool,
}

/// What came of a leader's turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// Something may have been read.
    Read,
    TimedOut,
    /// The connection has ended, and with it all of its calls.
    Ended,
}

/// The socket behind a role. `watch`, `now` and `awaits_callbacks` are called with the role's lock
/// held, the others without.
pub(super) trait Socket {
    fn now(&self) -> Instant;

    /// Changes what the event loop is told of; it is told of what is there already, too.
    fn watch(&self, from: Watch, to: Watch) -> io::Result<()>;

    /// Whether there are pending calls for whose replies no thread waits.
    fn awaits_callbacks(&self) -> bool;

    /// Has [`ReaderRole::put_back`] called at a point in time.
    fn put_back_at(&self, at: Instant);

    /// Waits for input until the deadline, reads some of it and completes calls with it.
    fn read(&self, deadline: Deadline) -> Turn;

    /// Ends the connection because the event loop cannot be told of it.
    fn fail(&self, error: &io::Error);
}

impl<T> ReaderRole<T> {
    /// The role of a socket that connects, of which the event loop is told everything.
    pub(super) fn of_event_loop() -> Self {
        Self {
            state: Mutex::new(State {
                holder: Holder::EventLoop,
                watch: Watch {
                    input: true,
                    output: true,
                },
                followers: BTreeMap::new(),
                last_left: None,
                timer_is_set: false,
            }),
        }
    }

    /// Waits for the outcome of a call, which is in the response table already, as a leader or as a
    /// follower. `None` when the deadline passes first.
    pub(super) fn wait(
        &self,
        opaque: i32,
        future: &ResponseFuture<T>,
        deadline: Deadline,
        socket: &impl Socket,
    ) -> Option<Result<T>> {
        if let Some(outcome) = future.take() {
            return Some(outcome);
        }
        if self.enter(opaque, future, socket) {
            return self.lead(future, deadline, socket);
        }
        match future.wait_or_lead(deadline) {
            Woken::Leads => self.lead(future, deadline, socket),
            Woken::Outcome(outcome) => {
                self.stop_following(opaque, socket);
                Some(outcome)
            }
            Woken::TimedOut => {
                self.stop_following(opaque, socket);
                None
            }
        }
    }

    /// Takes the role if it is free, else makes the caller a follower.
    fn enter(&self, opaque: i32, future: &ResponseFuture<T>, socket: &impl Socket) -> bool {
        let mut state = self.state.lock();
        match state.holder {
            Holder::Nobody => {
                let muted = state.watch_input(false, socket);
                if muted.is_ok() {
                    state.holder = Holder::Caller;
                }
                drop(state);
                done(muted.map(|()| Next::<T>::Nothing), socket)
            }
            Holder::EventLoop | Holder::Caller => {
                state.followers.insert(opaque, future.clone());
                false
            }
            Holder::Ended => false,
        }
    }

    fn lead(
        &self,
        future: &ResponseFuture<T>,
        deadline: Deadline,
        socket: &impl Socket,
    ) -> Option<Result<T>> {
        let role = Leading { role: self, socket };
        loop {
            if let Some(outcome) = future.take() {
                return Some(outcome);
            }
            match socket.read(deadline) {
                Turn::Read => {}
                Turn::TimedOut => return None,
                Turn::Ended => break,
            }
        }
        self.end();
        drop(role);
        // Whoever has ended the connection is about to complete its calls.
        future.wait(deadline)
    }

    fn stop_following(&self, opaque: i32, socket: &impl Socket) {
        let mut state = self.state.lock();
        if state.followers.remove(&opaque).is_none() {
            let handed_on = state.hand_on(socket);
            drop(state);
            done(handed_on, socket);
        }
    }

    /// Takes the role for the event loop, which has heard of input. `false`: somebody else reads it.
    pub(super) fn begin_turn(&self) -> bool {
        let mut state = self.state.lock();
        let is_free = state.holder == Holder::Nobody;
        if is_free {
            state.holder = Holder::EventLoop;
        }
        is_free
    }

    /// Gives up the role of whoever holds it.
    pub(super) fn end_turn(&self, socket: &impl Socket) {
        let handed_on = self.state.lock().hand_on(socket);
        done(handed_on, socket);
    }

    /// To be called when a call for whose reply no thread waits has been put into the response
    /// table. If callers have left the socket to nobody, the event loop takes it back.
    pub(super) fn callback_added(&self, socket: &impl Socket) {
        let mut state = self.state.lock();
        if state.holder == Holder::Nobody {
            let watched = state.watch_input(true, socket);
            drop(state);
            done(watched.map(|()| Next::<T>::Nothing), socket);
        }
    }

    /// Has the event loop told when the socket takes more, or no longer.
    pub(super) fn watch_output(&self, output: bool, socket: &impl Socket) -> io::Result<()> {
        let mut state = self.state.lock();
        let watch = state.watch;
        state.set_watch(Watch { output, ..watch }, socket)
    }

    /// The event loop's timer: it takes the socket back if callers have ceased.
    pub(super) fn put_back(&self, socket: &impl Socket) {
        let mut state = self.state.lock();
        state.timer_is_set = false;
        let put_back = match state.holder {
            Holder::Nobody => state.linger(NEXT_LOOK, socket),
            Holder::Caller => {
                // The next caller that leaves would have to wake the loop to set the timer anew.
                state.timer_is_set = true;
                Ok(Next::PutBackAt(add(socket.now(), NEXT_LOOK)))
            }
            Holder::EventLoop | Holder::Ended => return,
        };
        drop(state);
        done(put_back, socket);
    }

    /// Nobody reads any more.
    pub(super) fn end(&self) {
        let mut state = self.state.lock();
        state.holder = Holder::Ended;
        state.followers.clear();
    }
}

#[cfg(all(test, unix, not(loom)))]
impl<T> ReaderRole<T> {
    pub(super) fn is_led(&self) -> bool {
        self.state.lock().holder == Holder::Caller
    }

    pub(super) fn is_in_loop(&self) -> bool {
        self.state.lock().watch.input
    }
}

impl<T> State<T> {
    /// Makes a follower the leader. If none is left the event loop gets the socket back, now or at
    /// the returned time.
    fn hand_on(&mut self, socket: &impl Socket) -> io::Result<Next<T>> {
        let was_caller = match self.holder {
            Holder::Ended => return Ok(Next::Nothing),
            Holder::Caller => true,
            Holder::EventLoop | Holder::Nobody => false,
        };
        let next = self.followers.iter().find(|(_, future)| future.promote());
        if let Some(opaque) = next.map(|(opaque, _)| *opaque) {
            self.holder = Holder::Caller;
            let leader = self.followers.remove(&opaque);
            self.watch_input(false, socket)?;
            return Ok(leader.map_or(Next::Nothing, Next::Wake));
        }
        self.holder = Holder::Nobody;
        let mut is_one_of_several = true;
        if was_caller {
            let now = socket.now();
            let since = |left| now.saturating_duration_since(left);
            is_one_of_several = self.last_left.is_some_and(|left| since(left) < LINGER);
            self.last_left = Some(now);
        }
        // Looked at after the role is given up: a callback that comes later finds it free.
        if !is_one_of_several || socket.awaits_callbacks() {
            self.watch_input(true, socket)?;
        }
        self.linger(LINGER, socket)
    }

    /// Lets the event loop have the socket once callers have ceased; if they have not yet, returns
    /// when to look, unless that is seen to: after `look_after`.
    fn linger(&mut self, look_after: Duration, socket: &impl Socket) -> io::Result<Next<T>> {
        if self.watch.input || self.timer_is_set {
            return Ok(Next::Nothing);
        }
        let left = self.last_left;
        let Some(left) = left.filter(|left| socket.now() < add(*left, LINGER)) else {
            self.watch_input(true, socket)?;
            return Ok(Next::Nothing);
        };
        self.timer_is_set = true;
        Ok(Next::PutBackAt(add(left, look_after)))
    }

    fn watch_input(&mut self, input: bool, socket: &impl Socket) -> io::Result<()> {
        self.set_watch(
            Watch {
                input,
                ..self.watch
            },
            socket,
        )
    }

    fn set_watch(&mut self, watch: Watch, socket: &impl Socket) -> io::Result<()> {
        if watch != self.watch {
            socket.watch(self.watch, watch)?;
            self.watch = watch;
        }
        Ok(())
    }
}

/// Gives the role up at its end, even if completing a call panics.
struct Leading<'a, T, S: Socket> {
    role: &'a ReaderRole<T>,
    socket: &'a S,
}

impl<T, S: Socket> Drop for Leading<'_, T, S> {
    fn drop(&mut self) {
        // A model that has failed has no locks any more.
        if cfg!(loom) && std::thread::panicking() {
            return;
        }
        self.role.end_turn(self.socket);
    }
}

/// What is left to do once the lock is released.
enum Next<T> {
    Nothing,
    /// Waking who has been made the leader, which would keep others from the lock for long.
    Wake(ResponseFuture<T>),
    PutBackAt(Instant),
}

/// Does what is left to do; `false` if the connection ends by it.
fn done<T>(outcome: io::Result<Next<T>>, socket: &impl Socket) -> bool {
    match outcome {
        Ok(Next::Nothing) => {}
        Ok(Next::Wake(leader)) => leader.wake(),
        Ok(Next::PutBackAt(at)) => socket.put_back_at(at),
        Err(error) => {
            socket.fail(&error);
            return false;
        }
    }
    true
}

impl<T> fmt::Debug for ReaderRole<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.lock();
        f.debug_struct("ReaderRole")
            .field("holder", &state.holder)
            .field("watch", &state.watch)
            .field("followers", &state.followers.len())
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use std::collections::VecDeque;

    use loom::thread;

    use super::super::response_future::{ResponseTable, Waiter};
    use super::*;
    use crate::sync::atomic::{AtomicUsize, Ordering};
    use crate::sync::{Arc, Condvar, now};

    /// A server that answers each call at once, its socket, and the event loop's side of it. The
    /// reply to a call is its opaque.
    struct World {
        role: ReaderRole<i32>,
        table: ResponseTable<i32>,
        /// What runs when a note is read; no call waits for it.
        notes: ResponseTable<i32>,
        wire: Mutex<Wire>,
        changed: Condvar,
        begun: Instant,
        mistake: Mistake,
    }

    struct Wire {
        unread: VecDeque<i32>,
        watch: Watch,
        /// What the event loop has been told and has not looked at.
        event: bool,
        /// How many threads still do something that the event loop is there for.
        busy: usize,
    }

    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Mistake {
        None,
        /// Telling the loop of a socket does not report what is there already.
        ArmsWithoutLooking,
        /// Whoever gives the role up does not look for callbacks then.
        LeavesWithoutLooking,
    }

    const NOTE: i32 = 1000;

    impl World {
        /// Connected, and told of nothing yet.
        fn new(busy: usize, mistake: Mistake) -> Arc<Self> {
            let watch = Watch {
                input: true,
                output: false,
            };
            let world = Arc::new(Self {
                role: ReaderRole::of_event_loop(),
                table: ResponseTable::new(),
                notes: ResponseTable::new(),
                wire: Mutex::new(Wire {
                    unread: VecDeque::new(),
                    watch,
                    event: false,
                    busy,
                }),
                changed: Condvar::new(),
                begun: now(),
                mistake,
            });
            world.role.state.lock().watch = watch;
            world.role.end_turn(&At::begin(&world));
            world
        }

        /// Callers have come and gone: the loop is not told of input, and its timer is set.
        fn that_lingers(busy: usize, mistake: Mistake) -> Arc<Self> {
            let world = Self::new(busy, mistake);
            let at = At::begin(&world);
            for opaque in [-2, -1] {
                assert!(world.role.enter(opaque, &ResponseFuture::new(), &at));
                world.role.end_turn(&at);
            }
            assert!(!world.wire.lock().watch.input);
            world
        }

        fn comes(&self, reply: i32) {
            let mut wire = self.wire.lock();
            wire.unread.push_back(reply);
            wire.event |= wire.watch.input;
            drop(wire);
            self.changed.notify_all();
        }

        fn call(&self, opaque: i32) -> ResponseFuture<i32> {
            let future = ResponseFuture::new();
            self.table.insert(opaque, Waiter::Future(future.clone()));
            self.comes(opaque);
            future
        }

        fn wait(self: &Arc<Self>, opaque: i32, future: &ResponseFuture<i32>) {
            let outcome = self
                .role
                .wait(opaque, future, some_deadline(), &At::begin(self));
            assert_eq!(outcome, Some(Ok(opaque)));
        }

        fn is_idle(&self) {
            self.wire.lock().busy -= 1;
            self.changed.notify_all();
        }

        /// Reads one reply; `false` if there is none.
        fn read(&self) -> bool {
            let Some(reply) = self.wire.lock().unread.pop_front() else {
                return false;
            };
            let table = if reply == NOTE {
                &self.notes
            } else {
                &self.table
            };
            if let Some(waiter) = table.take(reply) {
                waiter.complete(Ok(reply));
            }
            true
        }

        /// The event loop, until nobody is busy.
        fn run_loop(self: &Arc<Self>) {
            loop {
                let mut wire = self.wire.lock();
                while !wire.event && wire.busy > 0 {
                    self.changed.wait(&mut wire);
                }
                if !wire.event {
                    return;
                }
                wire.event = false;
                drop(wire);
                if self.role.begin_turn() {
                    while self.read() {}
                    self.role.end_turn(&At::begin(self));
                }
            }
        }
    }

    /// The socket at a point in time.
    struct At {
        world: Arc<World>,
        now: Instant,
        /// Whether the reply of the caller that reads here never comes.
        times_out: bool,
    }

    impl At {
        fn begin(world: &Arc<World>) -> Self {
            Self {
                world: Arc::clone(world),
                now: world.begun,
                times_out: false,
            }
        }

        fn later(world: &Arc<World>) -> Self {
            let now = add(world.begun, LINGER);
            Self {
                now,
                ..Self::begin(world)
            }
        }
    }

    impl Socket for At {
        fn now(&self) -> Instant {
            self.now
        }

        fn watch(&self, from: Watch, to: Watch) -> io::Result<()> {
            let mut wire = self.world.wire.lock();
            assert_eq!(wire.watch, from);
            wire.watch = to;
            if self.world.mistake != Mistake::ArmsWithoutLooking {
                wire.event |= to.input && !wire.unread.is_empty();
            }
            drop(wire);
            self.world.changed.notify_all();
            Ok(())
        }

        fn awaits_callbacks(&self) -> bool {
            self.world.mistake != Mistake::LeavesWithoutLooking && self.world.table.has_callbacks()
        }

        fn put_back_at(&self, _: Instant) {}

        fn read(&self, _: Deadline) -> Turn {
            if self.times_out {
                return Turn::TimedOut;
            }
            let world = &self.world;
            let mut wire = world.wire.lock();
            while wire.unread.is_empty() {
                world.changed.wait(&mut wire);
            }
            drop(wire);
            assert!(world.read(), "nobody else reads meanwhile");
            Turn::Read
        }

        fn fail(&self, error: &io::Error) {
            panic!("{error}");
        }
    }

    fn some_deadline() -> Deadline {
        Deadline::after(Duration::from_secs(1))
    }

    /// A leader leaves, a follower arrives, the event loop gets the socket back and loses it again.
    #[test]
    fn loom_every_caller_gets_its_reply() {
        loom::model(|| {
            let world = World::new(2, Mistake::None);
            let callers = [1, 2].map(|opaque| {
                let world = Arc::clone(&world);
                thread::spawn(move || {
                    world.wait(opaque, &world.call(opaque));
                    world.is_idle();
                })
            });
            world.run_loop();
            callers.into_iter().for_each(|it| it.join().unwrap());
            assert!(world.role.state.lock().followers.is_empty());
        });
    }

    /// The same without an event loop: callers alone do, once the socket is out of it.
    #[test]
    fn loom_every_caller_gets_its_reply_while_the_loop_is_away() {
        loom::model(|| {
            let world = World::that_lingers(0, Mistake::None);
            let callers = [1, 2].map(|opaque| {
                let world = Arc::clone(&world);
                thread::spawn(move || world.wait(opaque, &world.call(opaque)))
            });
            world.wait(3, &world.call(3));
            callers.into_iter().for_each(|it| it.join().unwrap());
        });
    }

    /// A follower whose time is up leaves while it is made the leader: the role goes on.
    #[test]
    fn loom_a_follower_that_gives_up_hands_the_role_on() {
        loom::model(|| {
            let world = World::that_lingers(0, Mistake::None);
            let leader = Arc::clone(&world);
            let leading = thread::spawn(move || leader.wait(1, &leader.call(1)));
            let quitter = Arc::clone(&world);
            let quitting = thread::spawn(move || {
                let (role, at) = (&quitter.role, At::begin(&quitter));
                if role.enter(2, &ResponseFuture::new(), &at) {
                    role.end_turn(&at);
                } else {
                    role.stop_following(2, &at);
                }
            });
            world.wait(3, &world.call(3));
            leading.join().unwrap();
            quitting.join().unwrap();
            assert_eq!(world.role.state.lock().holder, Holder::Nobody);
        });
    }

    /// A leader leaves at its deadline; a follower reads its own reply.
    #[test]
    fn loom_a_leader_whose_time_is_up_leaves_nobody_behind() {
        loom::model(|| {
            let world = World::that_lingers(0, Mistake::None);
            let other = Arc::clone(&world);
            let leading = thread::spawn(move || {
                let future = ResponseFuture::new();
                other.table.insert(1, Waiter::Future(future.clone()));
                let at = At {
                    times_out: true,
                    ..At::begin(&other)
                };
                if other.role.enter(1, &future, &at) {
                    assert_eq!(other.role.lead(&future, some_deadline(), &at), None);
                } else {
                    other.role.stop_following(1, &at);
                }
            });
            world.wait(2, &world.call(2));
            leading.join().unwrap();
        });
    }

    fn a_callback_comes_while_a_caller_leaves(mistake: Mistake) {
        loom::model(move || {
            let world = World::that_lingers(2, mistake);
            let ran = Arc::new(AtomicUsize::new(0));
            let caller = Arc::clone(&world);
            let calling = thread::spawn(move || {
                caller.wait(1, &caller.call(1));
                caller.is_idle();
            });
            let (asker, counter) = (Arc::clone(&world), Arc::clone(&ran));
            let asking = thread::spawn(move || {
                let ended = Arc::clone(&asker);
                let completion = move |_| {
                    counter.fetch_add(1, Ordering::SeqCst);
                    ended.is_idle();
                };
                asker
                    .table
                    .insert(2, Waiter::Callback(Box::new(completion)));
                asker.role.callback_added(&At::begin(&asker));
                asker.comes(2);
            });
            world.run_loop();
            calling.join().unwrap();
            asking.join().unwrap();
            assert_eq!(ran.load(Ordering::SeqCst), 1);
        });
    }

    #[test]
    fn loom_a_callback_runs_when_the_last_caller_has_left() {
        a_callback_comes_while_a_caller_leaves(Mistake::None);
    }

    /// The seeded mistake: no look at the pending callbacks after the role is given up.
    #[test]
    #[should_panic(expected = "deadlock")]
    fn loom_a_caller_that_leaves_without_looking_leaves_a_callback_behind() {
        a_callback_comes_while_a_caller_leaves(Mistake::LeavesWithoutLooking);
    }

    /// A server sends a note while nobody reads, or a caller does; the timer finds callers gone.
    fn a_note_comes_while_the_loop_takes_the_socket_back(mistake: Mistake) {
        loom::model(move || {
            let world = World::that_lingers(2, mistake);
            let server = Arc::clone(&world);
            let ended = Arc::clone(&world);
            let seen = Waiter::Callback(Box::new(move |_| ended.is_idle()));
            world.notes.insert(NOTE, seen);
            let sending = thread::spawn(move || server.comes(NOTE));
            let looper = Arc::clone(&world);
            let looping = thread::spawn(move || {
                let (soon, later) = (At::begin(&looper), At::later(&looper));
                looper.role.put_back(&soon);
                looper.role.put_back(&later);
                looper.run_loop();
            });
            world.wait(1, &world.call(1));
            world.role.put_back(&At::later(&world));
            world.is_idle();
            sending.join().unwrap();
            looping.join().unwrap();
        });
    }

    #[test]
    fn loom_a_note_is_read_when_the_loop_has_the_socket_back() {
        a_note_comes_while_the_loop_takes_the_socket_back(Mistake::None);
    }

    /// The seeded mistake: the loop is told of the socket, but not of what is there to be read.
    #[test]
    #[should_panic(expected = "deadlock")]
    fn loom_to_arm_without_looking_leaves_a_note_unread() {
        a_note_comes_while_the_loop_takes_the_socket_back(Mistake::ArmsWithoutLooking);
    }

    /// The seeded mistake: a call that gets into the table after it has asked for the role.
    #[test]
    #[should_panic(expected = "deadlock")]
    fn loom_a_call_that_is_registered_after_asking_for_the_role_misses_its_reply() {
        loom::model(|| {
            let world = World::that_lingers(0, Mistake::None);
            let late = Arc::clone(&world);
            let calling = thread::spawn(move || {
                let (future, at) = (ResponseFuture::new(), At::begin(&late));
                late.comes(2);
                let leads = late.role.enter(2, &future, &at);
                late.table.insert(2, Waiter::Future(future.clone()));
                if leads || matches!(future.wait_or_lead(some_deadline()), Woken::Leads) {
                    late.role.lead(&future, some_deadline(), &at);
                } else {
                    late.role.stop_following(2, &at);
                }
            });
            world.wait(1, &world.call(1));
            calling.join().unwrap();
        });
    }

    /// The seeded mistake: a follower that goes with its reply and does not look whether it has been
    /// made the leader.
    #[test]
    #[should_panic(expected = "deadlock")]
    fn loom_a_follower_that_goes_without_looking_takes_the_role_with_it() {
        loom::model(|| {
            let world = World::that_lingers(0, Mistake::None);
            let [second, first, third] = [2, 1, 3].map(|opaque| world.call(opaque));
            let careless = Arc::clone(&world);
            let going = thread::spawn(move || {
                let at = At::begin(&careless);
                if careless.role.enter(2, &second, &at)
                    || matches!(second.wait_or_lead(some_deadline()), Woken::Leads)
                {
                    careless.role.lead(&second, some_deadline(), &at);
                }
            });
            let other = Arc::clone(&world);
            let calling = thread::spawn(move || other.wait(3, &third));
            world.wait(1, &first);
            going.join().unwrap();
            calling.join().unwrap();
        });
    }

    /// The connection ends while callers read and wait: all of them come back.
    #[test]
    fn loom_the_end_reaches_leader_and_followers() {
        struct Ends(Arc<World>);

        impl Socket for Ends {
            fn now(&self) -> Instant {
                self.0.begun
            }
            fn watch(&self, _: Watch, _: Watch) -> io::Result<()> {
                Ok(())
            }
            fn awaits_callbacks(&self) -> bool {
                false
            }
            fn put_back_at(&self, _: Instant) {}
            fn read(&self, _: Deadline) -> Turn {
                let mut wire = self.0.wire.lock();
                while wire.busy > 0 {
                    self.0.changed.wait(&mut wire);
                }
                Turn::Ended
            }
            fn fail(&self, _: &io::Error) {}
        }

        loom::model(|| {
            let world = World::that_lingers(1, Mistake::None);
            let callers = [1, 2].map(|opaque| {
                let world = Arc::clone(&world);
                let future = ResponseFuture::new();
                world.table.insert(opaque, Waiter::Future(future.clone()));
                thread::spawn(move || {
                    let socket = Ends(Arc::clone(&world));
                    let outcome = world.role.wait(opaque, &future, some_deadline(), &socket);
                    assert_eq!(outcome, Some(Ok(0)));
                })
            });
            // As a connection closes: the socket first, then the role, then the calls.
            world.is_idle();
            world.role.end();
            for waiter in [1, 2].into_iter().filter_map(|it| world.table.take(it)) {
                waiter.complete(Ok(0));
            }
            callers.into_iter().for_each(|it| it.join().unwrap());
        });
    }
}

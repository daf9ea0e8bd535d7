use std::collections::BTreeSet;

use rocketmq_protocol::MessageQueue;

use super::*;
use crate::random::SplitMix64;
use crate::rebalance::{AllocateError, AllocateMessageQueueStrategy};

#[derive(Debug)]
struct BeforeDash;

impl MachineRoomResolver for BeforeDash {
    fn broker_deploy_in(&self, message_queue: &MessageQueue) -> String {
        before_dash(message_queue.broker_name())
    }

    fn consumer_deploy_in(&self, client_id: &str) -> String {
        before_dash(client_id)
    }
}

fn before_dash(text: &str) -> String {
    text.split('-').next().unwrap().to_owned()
}

struct Case {
    seed: u64,
    queues: Vec<MessageQueue>,
    cids: Vec<String>,
}

fn cases() -> impl Iterator<Item = Case> {
    (0..300).map(|seed| {
        let mut random = SplitMix64::new(seed);
        let brokers = 1 + random.below(4);
        let mut queues: Vec<MessageQueue> = (0..brokers)
            .flat_map(|broker| {
                let room = random.below(3);
                let count = 1 + i32::try_from(random.below(20)).unwrap();
                (0..count).map(move |id| MessageQueue::new("T", format!("r{room}-b{broker}"), id))
            })
            .collect();
        queues.sort();
        let mut cids: Vec<String> = (0..1 + random.below(12))
            .map(|_| format!("r{}-{:x}", random.below(2), random.next()))
            .collect();
        cids.sort();
        Case { seed, queues, cids }
    })
}

fn strategies() -> Vec<Box<dyn AllocateMessageQueueStrategy>> {
    vec![
        Box::new(AllocateMessageQueueAveragely),
        Box::new(AllocateMessageQueueAveragelyByCircle),
        Box::new(AllocateMessageQueueConsistentHash::new()),
        Box::new(AllocateMachineRoomNearby::new(
            AllocateMessageQueueAveragely,
            BeforeDash,
        )),
        Box::new(AllocateMachineRoomNearby::new(
            AllocateMessageQueueConsistentHash::new(),
            BeforeDash,
        )),
    ]
}

#[test]
fn the_members_together_have_each_queue_once() {
    for Case { seed, queues, cids } in cases() {
        for strategy in strategies() {
            let mut all: Vec<MessageQueue> = cids
                .iter()
                .flat_map(|cid| strategy.allocate("g", cid, &queues, &cids).unwrap())
                .collect();
            all.sort();
            assert_eq!(all, queues, "seed {seed}, {}", strategy.name());
        }
    }
}

/// Of the wanted rooms, and of no others, each queue goes to one member; the first have more.
#[test]
fn queues_of_the_wanted_rooms_are_all_that_is_shared() {
    for Case { seed, queues, cids } in cases() {
        let in_room = |mq: &MessageQueue| {
            let named = mq.broker_name().replacen('-', "@", 1);
            MessageQueue::new(mq.topic().to_owned(), named, mq.queue_id())
        };
        let mut mq_all: Vec<MessageQueue> = queues.iter().map(in_room).collect();
        mq_all.sort();
        let strategy = AllocateMessageQueueByMachineRoom::new(["r0", "r2"]);
        let share = |cid: &String| strategy.allocate("g", cid, &mq_all, &cids).unwrap();
        let sizes: Vec<usize> = cids.iter().map(|cid| share(cid).len()).collect();
        let mut all: Vec<MessageQueue> = cids.iter().flat_map(share).collect();
        all.sort();
        let is_wanted = |mq: &&MessageQueue| !mq.broker_name().starts_with("r1@");
        assert!(
            all.iter().eq(mq_all.iter().filter(is_wanted)),
            "seed {seed}"
        );
        assert!(
            sizes.is_sorted_by(|a, b| a >= b) && sizes[0] - sizes[sizes.len() - 1] <= 1,
            "seed {seed}: {sizes:?}"
        );
    }
}

/// What a member works out does not depend on when, or how often, or what it had before.
#[test]
fn equal_questions_have_equal_answers() {
    for Case { seed, queues, cids } in cases().step_by(7) {
        for strategy in strategies() {
            for cid in &cids {
                let first = strategy.allocate("g", cid, &queues, &cids);
                let others = strategies();
                let same = others.iter().find(|s| s.name() == strategy.name());
                let second = same.unwrap().allocate("g", cid, &queues, &cids);
                assert_eq!(first, second, "seed {seed}, {}", strategy.name());
            }
        }
    }
}

#[test]
fn a_new_member_takes_queues_and_moves_no_others_on_the_ring() {
    let strategy = AllocateMessageQueueConsistentHash::new();
    for Case { seed, queues, cids } in cases() {
        let mut more = cids.clone();
        more.push("new".to_owned());
        more.sort();
        for cid in &cids {
            let before = strategy.allocate("g", cid, &queues, &cids).unwrap();
            let after = strategy.allocate("g", cid, &queues, &more).unwrap();
            let before: BTreeSet<_> = before.into_iter().collect();
            for mq in after {
                assert!(before.contains(&mq), "seed {seed}: {cid} got {mq}");
            }
        }
    }
}

#[test]
fn even_shares_differ_by_one_queue_and_the_first_members_have_more() {
    for Case { seed, queues, cids } in cases() {
        let even: [&dyn AllocateMessageQueueStrategy; 2] = [
            &AllocateMessageQueueAveragely,
            &AllocateMessageQueueAveragelyByCircle,
        ];
        for strategy in even {
            let sizes: Vec<usize> = cids
                .iter()
                .map(|cid| strategy.allocate("g", cid, &queues, &cids).unwrap().len())
                .collect();
            assert!(
                sizes.is_sorted_by(|a, b| a >= b) && sizes[0] - sizes[sizes.len() - 1] <= 1,
                "seed {seed}, {}: {sizes:?}",
                strategy.name()
            );
        }
    }
}

#[test]
fn a_lost_member_moves_only_its_own_queues_on_the_ring() {
    let strategy = AllocateMessageQueueConsistentHash::new();
    for Case { seed, queues, cids } in cases().filter(|case| case.cids.len() > 1) {
        let lost = &cids[usize::try_from(seed).unwrap() % cids.len()];
        let left: Vec<String> = cids.iter().filter(|cid| *cid != lost).cloned().collect();
        for cid in &left {
            let before = strategy.allocate("g", cid, &queues, &cids).unwrap();
            let after = strategy.allocate("g", cid, &queues, &left).unwrap();
            let after: BTreeSet<_> = after.into_iter().collect();
            for mq in before {
                assert!(after.contains(&mq), "seed {seed}: {cid} lost {mq}");
            }
        }
    }
}

#[test]
fn a_member_that_is_not_listed_gets_nothing() {
    let queues = [MessageQueue::new("t", "r1-b", 0)];
    let cids = ["r1-a".to_owned()];
    for strategy in strategies() {
        let mine = strategy.allocate("g", "r1-x", &queues, &cids).unwrap();
        assert_eq!(mine, [], "{}", strategy.name());
    }
    let by_room = AllocateMessageQueueByMachineRoom::new(["r1"]);
    assert_eq!(by_room.allocate("g", "x", &queues, &cids).unwrap(), []);
}

#[test]
fn inputs_that_allow_no_assignment_are_refused() {
    let queues = [MessageQueue::new("t", "r1-b", 0)];
    let cids = ["r1-a".to_owned()];
    let mut all = strategies();
    all.push(Box::new(AllocateMessageQueueByMachineRoom::new(["r1"])));
    for strategy in all {
        let allocate = |cid: &str, queues: &[MessageQueue], cids: &[String]| {
            strategy.allocate("g", cid, queues, cids).unwrap_err()
        };
        assert_eq!(allocate("", &queues, &cids), AllocateError::EmptyClientId);
        assert_eq!(allocate("r1-a", &[], &cids), AllocateError::NoQueues);
        assert_eq!(allocate("r1-a", &queues, &[]), AllocateError::NoMembers);
    }
}

/// Two connections of one client make its broker report the id twice; the second share of the
/// average strategies is then nobody's.
#[test]
fn an_id_that_is_there_twice_counts_twice() {
    let queues: Vec<_> = (0..4).map(|id| MessageQueue::new("t", "b", id)).collect();
    let cids = ["a".to_owned(), "a".to_owned()];
    let block = AllocateMessageQueueAveragely.allocate("g", "a", &queues, &cids);
    assert_eq!(block.unwrap(), queues[..2]);
    let dealt = AllocateMessageQueueAveragelyByCircle.allocate("g", "a", &queues, &cids);
    assert_eq!(dealt.unwrap(), [queues[0].clone(), queues[2].clone()]);
}

#[test]
fn the_fixed_list_is_given_without_any_check() {
    let queues = vec![MessageQueue::new("t", "b", 3)];
    let fixed = AllocateMessageQueueByConfig::new(queues.clone());
    assert_eq!(fixed.name(), "CONFIG");
    assert_eq!(fixed.allocate("g", "", &[], &[]).unwrap(), queues);
    let none = AllocateMessageQueueByConfig::default();
    assert_eq!(none.allocate("g", "", &[], &[]).unwrap(), []);
}

#[test]
fn an_unknown_room_is_an_error_that_names_the_culprit() {
    let strategy = AllocateMachineRoomNearby::new(AllocateMessageQueueAveragely, BeforeDash);
    let known = MessageQueue::new("t", "r1-b", 0);
    let unknown = MessageQueue::new("t", "-b", 0);
    let cids = ["-b".to_owned(), "r1-a".to_owned()];
    assert_eq!(
        strategy.allocate("g", "r1-a", std::slice::from_ref(&unknown), &cids[1..]),
        Err(AllocateError::QueueWithoutMachineRoom(unknown))
    );
    assert_eq!(
        strategy.allocate("g", "r1-a", &[known], &cids),
        Err(AllocateError::MemberWithoutMachineRoom("-b".to_owned()))
    );
}

/// Members that use different strategies are told apart by these names, in Java's form.
#[test]
fn strategies_have_the_names_of_java() {
    let nearby = AllocateMachineRoomNearby::new(AllocateMessageQueueAveragely, BeforeDash);
    let named: [(&dyn AllocateMessageQueueStrategy, &str); 5] = [
        (&AllocateMessageQueueAveragely, "AVG"),
        (&AllocateMessageQueueAveragelyByCircle, "AVG_BY_CIRCLE"),
        (
            &AllocateMessageQueueConsistentHash::default(),
            "CONSISTENT_HASH",
        ),
        (
            &AllocateMessageQueueByMachineRoom::new(["r1"]),
            "MACHINE_ROOM",
        ),
        (&nearby, "MACHINE_ROOM_NEARBY-AVG"),
    ];
    for (strategy, name) in named {
        assert_eq!(strategy.name(), name);
    }
}

#[test]
fn an_error_says_what_is_missing() {
    let queue = MessageQueue::new("t", "b", 3);
    for (error, words) in [
        (AllocateError::EmptyClientId, "client id is empty"),
        (AllocateError::NoQueues, "no queues"),
        (AllocateError::NoMembers, "no members"),
        (AllocateError::QueueWithoutMachineRoom(queue), "queueId=3"),
        (
            AllocateError::MemberWithoutMachineRoom("me".to_owned()),
            "member me",
        ),
        (
            AllocateError::Other("of the user".to_owned()),
            "of the user",
        ),
    ] {
        let text = error.to_string();
        assert!(text.contains(words), "{text}");
    }
}

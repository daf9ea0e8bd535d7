use rocketmq_blocking::Error;

use crate::support::Inbox;
use crate::{consumer_builder, problems, producer_builder};

/// What both builders say of a list of name servers.
#[track_caller]
fn refused(list: &str) -> String {
    let of_producer = problems(producer_builder(list).build().unwrap_err());
    let of_consumer = consumer_builder(list, "g")
        .message_listener(Inbox::new().listener())
        .build();
    assert_eq!(problems(of_consumer.unwrap_err()), of_producer);
    assert_eq!(of_producer.len(), 1, "{of_producer:?}");
    of_producer[0].clone()
}

/// The tests run without `NAMESRV_ADDR`; with it an empty list still replaces it.
#[test]
fn no_name_server_is_told_with_all_ways_to_name_one() {
    for list in ["", ";;", " ; ", "http://"] {
        let problem = refused(list);
        for word in [
            "no name server",
            "namesrv_addr",
            "NAMESRV_ADDR",
            "namesrv_domain",
        ] {
            assert!(problem.contains(word), "{list:?}: {problem}");
        }
    }
}

#[test]
fn what_is_no_address_is_quoted_with_the_reason() {
    const PORT: &str = "the port is not a number from 1 to 65535";
    for (list, why) in [
        ("host", "there is no port"),
        ("host:", PORT),
        ("host:99999", PORT),
        ("host:0", PORT),
        ("host:x", PORT),
        (":9876", "there is no host"),
        ("[::1]", "there is no port behind the brackets"),
        (
            "::1",
            "an IPv6 address needs brackets, and a port behind them",
        ),
        (
            "[::1:9876",
            "an opening bracket has no closing one before the port",
        ),
        ("a b:1", "a host has no blanks and none of [ ] / ; ,"),
        (
            "a:1,b:1",
            "an IPv6 address needs brackets, and a port behind them",
        ),
        ("good:1;a,b:1", "a host has no blanks and none of [ ] / ; ,"),
    ] {
        let bad = list.rsplit(';').next().unwrap();
        let expected = format!("namesrv_addr {bad:?} is not host:port: {why}");
        assert_eq!(refused(list), expected);
    }
}

#[test]
fn each_wrong_address_of_a_list_is_told() {
    let error = producer_builder("host;a:1;b:0;[::1]").build().unwrap_err();
    assert!(!error.is_retryable() && !error.may_have_been_stored());
    let problems = problems(error);
    assert_eq!(problems.len(), 3, "{problems:?}");
    for (problem, addr) in problems.iter().zip(["[::1]", "b:0", "host"]) {
        assert!(problem.contains(addr), "{problems:?}");
    }
}

#[test]
fn a_list_for_a_running_client_is_checked_alike() {
    let producer = crate::producer("127.0.0.1:1");
    for (list, why) in [
        ("", "the list of name servers is empty"),
        ("host", "there is no port"),
    ] {
        let error = producer.update_name_server_address_list(list).unwrap_err();
        assert!(matches!(error, Error::InvalidConfig { .. }), "{error:?}");
        crate::says(&error, &[why]);
    }
}

//! `rocketmq-embedded`: a name server and brokers on loopback for any RocketMQ client.

use std::io::{self, Read, Write};
use std::process::ExitCode;
use std::thread;

use rocketmq_embedded::Cluster;

const HELP: &str = "\
A RocketMQ name server and brokers in one process, in memory, on 127.0.0.1.

Usage: rocketmq-embedded [OPTIONS]

  --namesrv-port PORT   the name server's port, 0 for any free one   [default: 9876]
  --broker-port PORT    the first broker's port, 0 for any free ones [default: 10911]
                        the next brokers' ports follow 10 apart
  --brokers COUNT       how many brokers, broker-a, broker-b, ...    [default: 1]
  --topic NAME:QUEUES   create a topic with so many queues a broker; may be repeated
  --no-auto-create      sends to unknown topics fail instead of creating them
  --set KEY=VALUE       a broker setting under its Java key, such as lockMaxLiveTime=5000,
                        autoCreateSubscriptionGroup=false or longPollHold=2000 (milliseconds);
                        may be repeated, see BrokerConfig::set_property
  --delay-levels LIST   how long each delay level waits, such as 1s,5s,10s,30s,1m
  --order-messages      routes carry the configuration of ordered topics
  --stdin-close         end when standard input is closed
  --help                print this

Prints `ready namesrv=ADDRESS brokers=NAME:PORT,...` when clients can connect, and runs until it is
ended. RUST_LOG sets what is logged to standard error, for instance RUST_LOG=debug.
";

#[derive(Debug)]
struct Options {
    namesrv_port: u16,
    broker_port: u16,
    brokers: usize,
    topics: Vec<(String, u16)>,
    settings: Vec<(String, String)>,
    delay_levels: Option<String>,
    order_messages: bool,
    stdin_close: bool,
}

#[derive(Debug)]
enum Command {
    Help,
    Run(Options),
}

fn main() -> ExitCode {
    env_logger::init();
    let result = match parse(std::env::args().skip(1)) {
        Ok(Command::Help) => io::stdout().write_all(HELP.as_bytes()),
        Ok(Command::Run(options)) => run(&options),
        Err(text) => {
            complain(&format!("{text}; --help lists the options"));
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

fn complain(text: &str) {
    // Nothing is left to do when standard error cannot be written.
    let _ = writeln!(io::stderr(), "rocketmq-embedded: {text}");
}

fn run(options: &Options) -> io::Result<()> {
    let builder = Cluster::builder()
        .brokers(options.brokers)
        .namesrv_port(options.namesrv_port)
        .broker_port(options.broker_port)
        .configure_name_server(|config| config.order_message_enable = options.order_messages);
    let mut outcome = Ok(());
    let mut builder = builder.configure(|config| {
        let mut settings = options.settings.iter();
        outcome = settings.try_for_each(|(key, value)| config.set_property(key, value));
    });
    outcome.map_err(|text| io::Error::new(io::ErrorKind::InvalidInput, text))?;
    if let Some(levels) = &options.delay_levels {
        builder = builder.message_delay_level(&levels.replace(',', " "));
    }
    let cluster = builder.start()?;
    for (topic, queues) in &options.topics {
        cluster.create_topic(topic, *queues)?;
    }
    let brokers: Vec<String> = cluster
        .broker_names()
        .into_iter()
        .filter_map(|name| {
            let addr = cluster.broker_addr(&name)?;
            let (_, port) = addr.rsplit_once(':')?;
            Some(format!("{name}:{port}"))
        })
        .collect();
    let mut out = io::stdout();
    writeln!(
        out,
        "ready namesrv={} brokers={}",
        cluster.namesrv_addr(),
        brokers.join(",")
    )?;
    out.flush()?;
    if options.stdin_close {
        io::copy(&mut io::stdin().lock().by_ref(), &mut io::sink())?;
        cluster.shutdown();
        return Ok(());
    }
    // A signal ends the process; there is nothing on disk to bring in order.
    loop {
        thread::park();
    }
}

fn parse(mut args: impl Iterator<Item = String>) -> Result<Command, String> {
    let mut options = Options {
        namesrv_port: 9876,
        broker_port: 10911,
        brokers: 1,
        topics: Vec::new(),
        settings: Vec::new(),
        delay_levels: None,
        order_messages: false,
        stdin_close: false,
    };
    while let Some(arg) = args.next() {
        let mut value = || {
            args.next()
                .ok_or_else(|| format!("{arg} wants a value after it"))
        };
        match arg.as_str() {
            "--help" | "-h" => return Ok(Command::Help),
            "--namesrv-port" => options.namesrv_port = number(&arg, &value()?)?,
            "--broker-port" => options.broker_port = number(&arg, &value()?)?,
            "--brokers" => options.brokers = number(&arg, &value()?)?,
            "--topic" => {
                let text = value()?;
                let (name, queues) = text
                    .rsplit_once(':')
                    .ok_or_else(|| format!("{arg} wants NAME:QUEUES, not {text:?}"))?;
                let queues = number(&arg, queues)?;
                options.topics.push((name.to_owned(), queues));
            }
            "--no-auto-create" => {
                let setting = ("autoCreateTopicEnable".to_owned(), "false".to_owned());
                options.settings.push(setting);
            }
            "--set" => {
                let text = value()?;
                let (key, value) = text
                    .split_once('=')
                    .ok_or_else(|| format!("{arg} wants KEY=VALUE, not {text:?}"))?;
                options.settings.push((key.to_owned(), value.to_owned()));
            }
            "--delay-levels" => options.delay_levels = Some(value()?),
            "--order-messages" => options.order_messages = true,
            "--stdin-close" => options.stdin_close = true,
            _ => return Err(format!("unknown option {arg:?}")),
        }
    }
    Ok(Command::Run(options))
}

fn number<T: std::str::FromStr>(option: &str, text: &str) -> Result<T, String> {
    text.parse()
        .map_err(|_| format!("{option} wants a number in range, not {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Command, String> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn options_are_read() {
        let Ok(Command::Run(options)) = parsed(
            "--namesrv-port 0 --brokers 2 --topic T:8 --topic U:1 --stdin-close --set a=b=c",
        ) else {
            panic!("refused");
        };
        assert_eq!((options.namesrv_port, options.broker_port), (0, 10911));
        assert_eq!(options.brokers, 2);
        assert_eq!(options.topics, [("T".to_owned(), 8), ("U".to_owned(), 1)]);
        assert!(options.stdin_close);
        assert_eq!(options.settings, [("a".to_owned(), "b=c".to_owned())]);
    }

    #[test]
    fn errors_name_the_option() {
        for (line, text) in [
            ("--brokers", "--brokers wants a value after it"),
            (
                "--brokers two",
                "--brokers wants a number in range, not \"two\"",
            ),
            (
                "--broker-port 65536",
                "--broker-port wants a number in range, not \"65536\"",
            ),
            ("--topic T", "--topic wants NAME:QUEUES, not \"T\""),
            ("--set a", "--set wants KEY=VALUE, not \"a\""),
            ("--fast", "unknown option \"--fast\""),
        ] {
            assert_eq!(parsed(line).unwrap_err(), text);
        }
    }
}

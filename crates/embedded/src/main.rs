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
    auto_create: bool,
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
    let cluster = Cluster::builder()
        .brokers(options.brokers)
        .namesrv_port(options.namesrv_port)
        .broker_port(options.broker_port)
        .auto_create_topic(options.auto_create)
        .start()?;
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
        auto_create: true,
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
            "--no-auto-create" => options.auto_create = false,
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
        let Ok(Command::Run(options)) =
            parsed("--namesrv-port 0 --brokers 2 --topic T:8 --topic U:1 --stdin-close")
        else {
            panic!("refused");
        };
        assert_eq!((options.namesrv_port, options.broker_port), (0, 10911));
        assert_eq!(options.brokers, 2);
        assert_eq!(options.topics, [("T".to_owned(), 8), ("U".to_owned(), 1)]);
        assert!(options.stdin_close && options.auto_create);
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
            ("--fast", "unknown option \"--fast\""),
        ] {
            assert_eq!(parsed(line).unwrap_err(), text);
        }
    }
}

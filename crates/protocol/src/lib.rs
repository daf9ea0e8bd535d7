//! Sans-IO codec for the Apache RocketMQ remoting protocol.

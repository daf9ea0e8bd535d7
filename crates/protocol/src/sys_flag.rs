//! Flag bits of stored messages (Java `MessageSysFlag`) and of pull requests (`PullSysFlag`).

/// The body is compressed.
pub const COMPRESSED: i32 = 0x1;
/// Several tags in one message.
pub const MULTI_TAGS: i32 = 0x2;
/// The two bits that hold the state of a transaction.
pub const TRANSACTION_MASK: i32 = 0xC;
/// A half message, not yet committed.
pub const TRANSACTION_PREPARED: i32 = 0x4;
/// A committed message.
pub const TRANSACTION_COMMIT: i32 = 0x8;
/// A message that was rolled back.
pub const TRANSACTION_ROLLBACK: i32 = 0xC;
/// The host that sent the message has an IPv6 address.
pub const BORN_HOST_V6: i32 = 0x10;
/// The host that stored the message has an IPv6 address.
pub const STORE_HOST_V6: i32 = 0x20;
/// The body of an inner batch is to be taken apart by the client.
pub const NEED_UNWRAP: i32 = 0x40;
/// The body is a batch.
pub const INNER_BATCH: i32 = 0x80;
/// The bits that hold the compression algorithm.
pub const COMPRESSION_MASK: i32 = 0x700;
/// LZ4 frames.
pub const COMPRESSION_LZ4: i32 = 0x100;
/// Zstandard frames.
pub const COMPRESSION_ZSTD: i32 = 0x200;
/// Zlib streams; old clients leave the bits empty.
pub const COMPRESSION_ZLIB: i32 = 0x300;

/// Pull: the request carries the group's progress.
pub const PULL_COMMIT_OFFSET: i32 = 0x1;
/// Pull: the broker may hold the request until a message arrives.
pub const PULL_SUSPEND: i32 = 0x2;
/// Pull: the request carries the subscription.
pub const PULL_SUBSCRIPTION: i32 = 0x4;
/// Pull: a filter class decides.
pub const PULL_CLASS_FILTER: i32 = 0x8;
/// Pull: the consumer assigns queues itself.
pub const PULL_LITE_PULL: i32 = 0x10;

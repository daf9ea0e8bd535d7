//! Compressed bodies.

use bytes::Bytes;
use rocketmq_protocol::CodecError;
use rocketmq_protocol::compression::{CompressionType, MAX_DECOMPRESSED_LENGTH};

use crate::{KINDS, alone, ends, frugal};

const CHUNK: usize = 4 * 1024 * 1024;

/// A stream of `chunks` times four million zeros, made of one compressed chunk that is repeated. The
/// zlib stream has no end, which nobody gets to see.
fn bomb(kind: CompressionType, chunks: usize) -> Vec<u8> {
    let zeros = vec![0; CHUNK];
    let once = kind.compress(&zeros, 1).unwrap();
    match kind {
        CompressionType::Zstd => once.repeat(chunks),
        CompressionType::Lz4 => {
            let (header, blocks) = once.split_at(lz4_frame(0).len() - 4);
            let (blocks, end) = blocks.split_at(blocks.len() - 4);
            [header, &blocks.repeat(chunks), end].concat()
        }
        _ => {
            let mut encoder = flate2::Compress::new(flate2::Compression::fast(), true);
            let [first, second] = [(); 2].map(|()| {
                let mut out = Vec::with_capacity(CHUNK);
                encoder
                    .compress_vec(&zeros, &mut out, flate2::FlushCompress::Full)
                    .unwrap();
                out
            });
            [first, second.repeat(chunks - 1)].concat()
        }
    }
}

#[test]
fn bodies_expand_to_the_limit_and_not_beyond() {
    ends(|_| {
        let most = MAX_DECOMPRESSED_LENGTH / CHUNK;
        for kind in KINDS {
            let bomb = bomb(kind, most + 1);
            assert!(bomb.len() < MAX_DECOMPRESSED_LENGTH / 100, "{kind:?}");
            let CodecError::Compression { detail, .. } = kind.decompress(&bomb).unwrap_err() else {
                panic!("{kind:?}: another error");
            };
            assert!(detail.contains("67108864"), "{kind:?}: {detail}");
        }
        let body = CompressionType::Zstd.decompress(&bomb(CompressionType::Zstd, most));
        assert_eq!(body.map(|body| body.len()), Ok(MAX_DECOMPRESSED_LENGTH));
    });
}

#[test]
fn a_cut_body_is_an_error_wherever_it_is_cut() {
    let _alone = alone();
    let body: Vec<u8> = (0..100_000_u32)
        .flat_map(|n| (n / 7).wrapping_mul(n).to_le_bytes())
        .collect();
    for kind in KINDS {
        let small = kind.compress(&body[..3_000], 5).unwrap();
        for end in 0..small.len() {
            assert!(
                kind.decompress(&small[..end]).is_err(),
                "{kind:?} cut at {end}"
            );
        }
        let large = kind.compress(&body, 5).unwrap();
        assert_eq!(kind.decompress(&large).unwrap(), body);
        for part in 1..8 {
            let end = large.len() * part / 8;
            assert!(
                kind.decompress(&large[..end]).is_err(),
                "{kind:?} cut at {end}"
            );
        }
    }
}

/// An LZ4 frame by hand: blocks of four plain bytes, no checksums.
fn lz4_frame(blocks: usize) -> Vec<u8> {
    let empty = CompressionType::Lz4.compress(b"", 0).unwrap();
    let mut frame = empty[..empty.len() - 4].to_vec();
    for _ in 0..blocks {
        frame.extend_from_slice(&0x8000_0004_u32.to_le_bytes());
        frame.extend_from_slice(b"data");
    }
    frame.extend_from_slice(&[0; 4]);
    frame
}

#[test]
fn an_lz4_body_is_one_whole_frame() {
    let _alone = alone();
    let expand = |bytes: &[u8]| CompressionType::Lz4.decompress(bytes);
    let frame = lz4_frame(3);
    assert_eq!(expand(&frame).unwrap(), b"datadatadata"[..]);
    for blocks in 0..3 {
        let end = frame.len() - 4 - 8 * blocks;
        assert!(expand(&frame[..end]).is_err(), "ended between two blocks");
    }
    assert!(
        expand(&[frame.clone(), lz4_frame(1)].concat()).is_err(),
        "a second frame"
    );
    assert!(expand(&[&frame[..], b"x"].concat()).is_err());
    assert!(expand(b"").is_err());
}

#[test]
fn a_zstd_window_beyond_the_limit_is_refused() {
    let _alone = alone();
    let claim = |window_log: u8| {
        let frame = [0x28, 0xB5, 0x2F, 0xFD, 0, (window_log - 10) << 3, 1, 0, 0];
        frugal(frame.len(), || CompressionType::Zstd.decompress(&frame))
    };
    assert_eq!(claim(26), Ok(Bytes::new()), "an empty last block");
    for window_log in [27, 31, 41] {
        let Err(CodecError::Compression { detail, .. }) = claim(window_log) else {
            panic!("a window of 2^{window_log} bytes was taken");
        };
        assert!(detail.contains("memory"), "{detail}");
    }
}

//! Recordings: what is read can be written, and is read again as the same records.
//!
//! Bytes are tried as a file, and as the contents of one frame behind a right head: no fuzzer guesses a
//! checksum.

use flashweir_wire::recording::{Head, Record, RecordingError, Segment, Writer};

pub(crate) fn run(data: &[u8]) {
    check(data);
    let mut file = Writer::begin(&Head::default());
    put_frame(data, &mut file);
    check(&file);
}

fn check(file: &[u8]) {
    let Ok((head, records)) = read(file) else { return };
    let mut written = Writer::begin(&head);
    let mut writer = Writer::default();
    records.iter().for_each(|record| writer.push(record));
    written.extend(writer.take_frame());
    let (head_again, again) = read(&written).unwrap_or_else(|error| panic!("what was written: {error}"));
    assert_eq!(head_again, head);
    let mut rewritten = Writer::begin(&head_again);
    let mut writer = Writer::default();
    again.iter().for_each(|record| writer.push(record));
    rewritten.extend(writer.take_frame());
    assert_eq!(rewritten, written, "the same records are the same bytes");
}

fn read(file: &[u8]) -> Result<(Head, Vec<Record>), RecordingError> {
    let mut segment = Segment::open(file)?;
    let head = segment.head().clone();
    let mut all = Vec::new();
    while let Some(records) = segment.records()? {
        all.extend(records);
    }
    Ok((head, all))
}

/// One frame, its contents stored and not deflated (RFC 1951 §3.2.4).
fn put_frame(contents: &[u8], file: &mut Vec<u8>) {
    let Ok(length) = u16::try_from(contents.len()) else { return };
    let mut packed = vec![1];
    packed.extend(length.to_le_bytes());
    packed.extend((!length).to_le_bytes());
    packed.extend_from_slice(contents);
    file.extend((packed.len() as u32).to_le_bytes());
    file.extend(crc32(&packed).to_le_bytes());
    file.extend(packed);
}

/// CRC-32 of ISO 3309, bit by bit: a second opinion on the product's tables.
fn crc32(bytes: &[u8]) -> u32 {
    const POLYNOMIAL: u32 = 0xEDB8_8320;
    let step = |crc: u32| if crc & 1 == 1 { crc >> 1 ^ POLYNOMIAL } else { crc >> 1 };
    !bytes.iter().fold(u32::MAX, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), |crc, _| step(crc)))
}

//! The bytes of log files and snapshots: a header, then frames, each with checksums.
//!
//! ```text
//! file     magic: 16 bytes | version: u32 | 0: u32 | store: u64 | number: u64 | previous: u64
//!          | crc: u32 | 0: u32
//! frame    magic: u32 | flags: u32 | epoch: u64 | previous: u64 | length: u64 | commits: u32
//!          | definitions: u32 | crc of the payload: u32 | crc of this header: u32
//!          payload: commits | definitions of tables
//! ```
//! `previous` is the epoch of the frame before, so that a frame that is lost is missed. The
//! header's checksum begins with the store and the file's number, so that a frame of another file
//! is not taken for one of this. Numbers are little-endian; checksums are CRC-32.

use super::error::OpenError;
use super::record::{take, take_array};
use crc32fast::Hasher;
use std::io::{self, Read};

/// The version of the format of all files.
pub(super) const VERSION: u32 = 1;

pub(super) const FILE_HEADER: usize = 56;
pub(super) const FRAME_HEADER: usize = 48;

const FRAME_MAGIC: [u8; 4] = *b"\xC0rLy";

/// The two kinds of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Log,
    Snapshot,
}

impl Kind {
    fn magic(self) -> &'static [u8; 16] {
        match self {
            Self::Log => b"corelay log\0\0\0\0\n",
            Self::Snapshot => b"corelay snap\0\0\0\n",
        }
    }
}

/// A file's own facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileHeader {
    pub(super) kind: Kind,
    /// The number of the store that the file belongs to.
    pub(super) store: u64,
    /// The number of the log file, or the epoch of the snapshot.
    pub(super) number: u64,
    /// The last epoch before the file.
    pub(super) previous: u64,
}

impl FileHeader {
    pub(super) fn encode(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(FILE_HEADER);
        bytes.extend_from_slice(self.kind.magic());
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&[0; 4]);
        for number in [self.store, self.number, self.previous] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        let crc = crc32fast::hash(&bytes);
        bytes.extend_from_slice(&crc.to_le_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes
    }

    fn decode(bytes: &[u8; FILE_HEADER], kind: Kind) -> Result<Self, &'static str> {
        let (fields, crc) = bytes.split_at(FILE_HEADER - 8);
        if crc[..4] != crc32fast::hash(fields).to_le_bytes() || crc[4..] != [0; 4] {
            return Err("the header's checksum is wrong");
        }
        let mut rest = &fields[24..];
        let mut number = || take_array(&mut rest).map_or(0, u64::from_le_bytes);
        let header = Self {
            kind,
            store: number(),
            number: number(),
            previous: number(),
        };
        if fields[..16] != *kind.magic() || fields[16..20] != VERSION.to_le_bytes() {
            return Err("it is a file of another kind or version");
        }
        Ok(header)
    }
}

/// A frame's own facts: those of an epoch's commits, or of a part of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct FrameHeader {
    pub(super) flags: u32,
    pub(super) epoch: u64,
    /// The epoch of the frame before. In a snapshot, the number of frames before.
    pub(super) previous: u64,
    pub(super) commits: u32,
    /// The length of the definitions at the end of the payload, in bytes.
    pub(super) definitions: u32,
}

/// The frame was not synchronized when it was written, so frames before it may be missing after a
/// power cut.
pub(super) const UNSYNCED: u32 = 1;

/// The frame is the last of a snapshot. Its epoch is the last one that the snapshot may have seen.
pub(super) const END: u32 = 2;

/// Writes the header of a frame into the first bytes of `frame`, whose payload is behind it.
pub(super) fn seal(frame: &mut [u8], header: FrameHeader, file: FileHeader) {
    let (place, payload) = frame.split_at_mut(FRAME_HEADER);
    place[0..4].copy_from_slice(&FRAME_MAGIC);
    place[4..8].copy_from_slice(&header.flags.to_le_bytes());
    place[8..16].copy_from_slice(&header.epoch.to_le_bytes());
    place[16..24].copy_from_slice(&header.previous.to_le_bytes());
    place[24..32].copy_from_slice(&(payload.len() as u64).to_le_bytes());
    place[32..36].copy_from_slice(&header.commits.to_le_bytes());
    place[36..40].copy_from_slice(&header.definitions.to_le_bytes());
    place[40..44].copy_from_slice(&crc32fast::hash(payload).to_le_bytes());
    let crc = header_crc(&place[..44], file);
    place[44..48].copy_from_slice(&crc.to_le_bytes());
}

fn header_crc(fields: &[u8], file: FileHeader) -> u32 {
    let mut hasher = Hasher::new();
    hasher.update(&file.store.to_le_bytes());
    hasher.update(&file.number.to_le_bytes());
    hasher.update(fields);
    hasher.finalize()
}

/// The length of the payload and its checksum beside the rest of a header; `None` if the header is
/// not whole.
fn open_header(fields: &[u8; FRAME_HEADER], file: FileHeader) -> Option<(FrameHeader, u64, u32)> {
    let mut rest = &fields[..];
    let magic = take_array::<4>(&mut rest)?;
    let mut header = FrameHeader {
        flags: u32::from_le_bytes(take_array(&mut rest)?),
        epoch: u64::from_le_bytes(take_array(&mut rest)?),
        previous: u64::from_le_bytes(take_array(&mut rest)?),
        ..FrameHeader::default()
    };
    let length = u64::from_le_bytes(take_array(&mut rest)?);
    header.commits = u32::from_le_bytes(take_array(&mut rest)?);
    header.definitions = u32::from_le_bytes(take_array(&mut rest)?);
    let payload_crc = u32::from_le_bytes(take_array(&mut rest)?);
    let crc = u32::from_le_bytes(take_array(&mut rest)?);
    let is_whole = magic == FRAME_MAGIC
        && crc == header_crc(&fields[..44], file)
        && u64::from(header.definitions) <= length;
    is_whole.then_some((header, length, payload_crc))
}

/// A whole frame.
#[derive(Debug, Clone)]
pub(super) struct Frame {
    pub(super) header: FrameHeader,
    /// Header and payload.
    pub(super) bytes: Vec<u8>,
}

impl Frame {
    /// The bytes of the commits.
    pub(super) fn commits(&self) -> &[u8] {
        &self.bytes[FRAME_HEADER..self.bytes.len() - self.header.definitions as usize]
    }

    /// The bytes of the definitions.
    pub(super) fn definitions(&self) -> &[u8] {
        &self.bytes[self.bytes.len() - self.header.definitions as usize..]
    }
}

/// The place where a file stops to be readable.
#[derive(Debug, Clone)]
pub(super) struct Bad {
    /// Bytes from the beginning of the file.
    pub(super) offset: u64,
    pub(super) what: &'static str,
    /// The frame's header, if that is whole.
    pub(super) header: Option<FrameHeader>,
    /// The file's bytes from there to its end.
    pub(super) rest: Vec<u8>,
}

/// Reads a file's frames one after the other.
pub(super) struct FrameReader {
    source: Box<dyn Read + Send>,
    pub(super) file: FileHeader,
    /// The place of the next frame.
    pub(super) offset: u64,
    /// The length of the file.
    pub(super) length: u64,
}

/// The next thing in a file.
pub(super) enum Found {
    Frame(Frame),
    End,
    Bad(Bad),
}

impl FrameReader {
    /// Reads the header of a file. Gives back a bad place if it is not that of `expected`, whose
    /// field `previous` does not matter.
    pub(super) fn new(
        (mut source, length): (Box<dyn Read + Send>, u64),
        expected: FileHeader,
    ) -> io::Result<Result<Self, Bad>> {
        let mut bytes = Vec::new();
        let taken = source.by_ref().take(FILE_HEADER as u64);
        { taken }.read_to_end(&mut bytes)?;
        let header = match <&[u8; FILE_HEADER]>::try_from(&bytes[..]) {
            Err(_) => Err("the header is not whole"),
            Ok(bytes) => FileHeader::decode(bytes, expected.kind),
        };
        let what = match header {
            Err(what) => what,
            Ok(file) if file.store != expected.store => "it belongs to another store",
            Ok(file) if file.number != expected.number => "it is another file of the store",
            Ok(file) => {
                return Ok(Ok(Self {
                    source,
                    file,
                    offset: FILE_HEADER as u64,
                    length,
                }));
            }
        };
        source.read_to_end(&mut bytes)?;
        Ok(Err(Bad {
            offset: 0,
            what,
            header: None,
            rest: bytes,
        }))
    }

    pub(super) fn next(&mut self) -> io::Result<Found> {
        let mut bytes = Vec::new();
        let left = self.length - self.offset;
        if left == 0 {
            return Ok(Found::End);
        }
        let wanted = left.min(FRAME_HEADER as u64);
        self.source.by_ref().take(wanted).read_to_end(&mut bytes)?;
        let Ok(fields) = <&[u8; FRAME_HEADER]>::try_from(&bytes[..]) else {
            return self.bad("a frame's header is not whole", None, bytes);
        };
        let Some((header, length, crc)) = open_header(fields, self.file) else {
            return self.bad("the checksum of a frame's header is wrong", None, bytes);
        };
        if length > left - FRAME_HEADER as u64 {
            return self.bad("a frame is not whole", Some(header), bytes);
        }
        bytes.reserve_exact(length as usize);
        self.source.by_ref().take(length).read_to_end(&mut bytes)?;
        if bytes.len() as u64 != FRAME_HEADER as u64 + length {
            return self.bad("a frame is not whole", Some(header), bytes);
        }
        if crc32fast::hash(&bytes[FRAME_HEADER..]) != crc {
            return self.bad("a frame's checksum is wrong", Some(header), bytes);
        }
        self.offset += bytes.len() as u64;
        Ok(Found::Frame(Frame { header, bytes }))
    }

    fn bad(
        &mut self,
        what: &'static str,
        header: Option<FrameHeader>,
        mut rest: Vec<u8>,
    ) -> io::Result<Found> {
        self.source.read_to_end(&mut rest)?;
        Ok(Found::Bad(Bad {
            offset: self.offset,
            what,
            header,
            rest,
        }))
    }
}

/// Whether there is a whole frame anywhere in `bytes`, after its first byte.
pub(super) fn has_frame(bytes: &[u8], file: FileHeader) -> Option<FrameHeader> {
    (1..bytes.len()).find_map(|at| {
        let mut rest = &bytes[at..];
        if rest[0] != FRAME_MAGIC[0] {
            return None;
        }
        let (header, length, crc) = open_header(&take_array(&mut rest)?, file)?;
        let payload = take(&mut rest, u32::try_from(length).ok()?)?;
        (crc32fast::hash(payload) == crc).then_some(header)
    })
}

/// The file that says that a directory is a store, and which.
pub(super) const IDENTITY: &str = "identity";

/// The contents of the identity file.
pub(super) fn identity(store: u64) -> String {
    let text = format!("corelay store\nversion {VERSION}\nnumber {store:016x}\n");
    let crc = crc32fast::hash(text.as_bytes());
    format!("{text}checksum {crc:08x}\n")
}

/// The store's number in an identity file.
pub(super) fn parse_identity(text: &str) -> Result<u64, OpenError> {
    let damaged = || OpenError::Damaged {
        file: IDENTITY.to_owned(),
        offset: 0,
        what: "it is not the identity of a store".to_owned(),
        advice: "restore the file from a backup",
    };
    let line = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
    let version = line("version ").and_then(|text| text.parse().ok());
    // Another version may have other lines, but has the first two.
    let found: u32 = match version {
        Some(version) if text.starts_with("corelay store\n") => version,
        _ => return Err(damaged()),
    };
    let store = line("number ").and_then(|text| u64::from_str_radix(text, 16).ok());
    match store {
        Some(store) if identity(store) == text => Ok(store),
        _ if found != VERSION => Err(OpenError::Version {
            found,
            known: VERSION,
        }),
        _ => Err(damaged()),
    }
}

//! Turns: the requests of one read of a connection to other shards, and all its answers in order.

use crate::batch::Batch;

/// A part of a turn's answers.
#[derive(Clone, Copy)]
enum Piece {
    /// So many bytes that this thread has written.
    Bytes(usize),
    /// The next answer of that shard's batch.
    Remote(u32),
}

/// The answers of a read, some of which are still to come from other shards.
pub(crate) struct Turn {
    pieces: Vec<Piece>,
    /// The pieces that have been taken.
    taken: usize,
    /// The answers that this thread has written, and the number of bytes of them that have been taken.
    bytes: Vec<u8>,
    bytes_taken: usize,
    /// A batch for each shard, unless it is on its way.
    batches: Vec<Option<Box<Batch>>>,
    /// The number of batches on their way.
    pub(crate) away: usize,
}

/// Turns that are over, whose memory new ones take.
pub(crate) type Spare = Vec<Box<Turn>>;

/// The most turns whose memory is kept.
pub(crate) const SPARE: usize = 256;

impl Turn {
    pub(crate) fn new(shards: usize) -> Box<Self> {
        Box::new(Self {
            pieces: Vec::new(),
            taken: 0,
            bytes: Vec::new(),
            bytes_taken: 0,
            batches: (0..shards).map(|_| None).collect(),
            away: 0,
        })
    }

    /// Makes it as new, but for the memory that it has. Returns false if that is much.
    pub(crate) fn clear(&mut self) -> bool {
        const MOST: usize = 16 << 10;
        self.pieces.clear();
        self.taken = 0;
        self.bytes.clear();
        self.bytes_taken = 0;
        let batches = self.batches.iter_mut().flatten();
        let kept: usize = batches.map(|batch| batch.clear()).sum();
        self.bytes.capacity() + kept <= MOST
    }

    /// The bytes of answers that this thread has written.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The bytes of requests, about.
    pub(crate) fn requests(&self) -> usize {
        self.batches.iter().flatten().map(|batch| batch.len()).sum()
    }

    /// The batch of a shard, for one more request, whose answer comes next.
    pub(crate) fn batch(&mut self, shard: usize) -> &mut Batch {
        self.pieces.push(Piece::Remote(shard as u32));
        self.batches[shard].get_or_insert_default()
    }

    /// Adds what `write` appends.
    pub(crate) fn add(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let before = self.bytes.len();
        write(&mut self.bytes);
        let new = self.bytes.len() - before;
        match self.pieces.last_mut() {
            Some(Piece::Bytes(len)) => *len += new,
            _ if new == 0 => {}
            _ => self.pieces.push(Piece::Bytes(new)),
        }
    }

    /// Takes the batches that are to be sent, with their shards.
    pub(crate) fn leave(&mut self) -> impl Iterator<Item = (usize, Box<Batch>)> {
        let batches = self.batches.iter_mut().enumerate();
        let away = &mut self.away;
        batches.filter_map(move |(shard, batch)| {
            let batch = batch.take_if(|batch| !batch.is_done())?;
            *away += 1;
            Some((shard, batch))
        })
    }

    /// Gives a batch back.
    pub(crate) fn come_back(&mut self, shard: usize, batch: Box<Batch>) {
        self.batches[shard] = Some(batch);
        self.away -= 1;
    }

    /// Appends answers to `out`, in order, until `most` bytes are there or one has not come. Returns
    /// whether all are done.
    pub(crate) fn assemble(&mut self, out: &mut Vec<u8>, most: usize) -> bool {
        while let Some(piece) = self.pieces.get(self.taken) {
            if out.len() >= most {
                return false;
            }
            match *piece {
                Piece::Bytes(len) => {
                    let end = self.bytes_taken + len;
                    out.extend_from_slice(&self.bytes[self.bytes_taken..end]);
                    self.bytes_taken = end;
                }
                Piece::Remote(shard) => {
                    let Some(batch) = &mut self.batches[shard as usize] else {
                        return false;
                    };
                    let Some(answer) = batch.take() else {
                        batch.forget_answers();
                        return false;
                    };
                    out.extend_from_slice(answer);
                }
            }
            self.taken += 1;
        }
        true
    }
}

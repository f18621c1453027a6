//! The parameters of a load, and which of them contradict each other.

pub use super::keys::Sizes;
use super::keys::digits;

/// The parameters of a load.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Connections that carry the load, over all threads.
    pub connections: usize,
    /// Requests that a connection sends in one write; it sends more after all their answers.
    pub pipeline: usize,
    /// Share of the requests that are gets, 0 to 1.
    pub get_ratio: f64,
    /// Number of different keys.
    pub keys: u64,
    /// Length of a key in bytes.
    pub key_size: usize,
    /// Lengths of values in bytes.
    pub value_size: Sizes,
    /// Skew θ of Zipf's law by which keys are chosen; 0 for equal chances.
    pub zipf: f64,
    /// Requests per second that arrive over all connections; `None` for a closed loop.
    pub load: Option<f64>,
    /// Whether a get that misses is followed by a set of its key.
    pub miss_set: bool,
    /// Bursts of keys that are asked for once.
    pub scan: Option<Scan>,
    /// Share of the requests for one hot key, 0 to 1, beside what the law gives it.
    pub hot: f64,
    /// Further connections, over which nothing is sent.
    pub idle_connections: usize,
    /// Load threads.
    pub threads: usize,
    /// Whether load threads poll without sleeping.
    pub spin: bool,
    /// Seed of the random choices.
    pub seed: u64,
}

/// Bursts of consecutive keys that are never asked for again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scan {
    /// Requests of a load thread between two bursts.
    pub every: u64,
    /// Keys of a burst.
    pub length: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            connections: 64,
            pipeline: 1,
            get_ratio: 0.9,
            keys: 1_000_000,
            key_size: 12,
            value_size: Sizes::of(32),
            zipf: 0.99,
            load: None,
            miss_set: false,
            scan: None,
            hot: 0.0,
            idle_connections: 0,
            threads: 1,
            spin: false,
            seed: 1,
        }
    }
}

/// Number of keys that scans may ask for beyond those of the load: more than a day of them.
const SCANNED: u64 = 1 << 40;

impl Options {
    /// Checks that the parameters do not contradict each other.
    ///
    /// # Errors
    /// A sentence that names the flags at fault.
    pub fn check(&self) -> Result<(), String> {
        let Self {
            threads,
            connections,
            keys,
            key_size,
            ..
        } = *self;
        if threads > connections {
            return Err(format!(
                "--threads {threads} is more than --connections {connections}; a load thread has at \
                 least one connection"
            ));
        }
        let names = match self.scan {
            Some(_) => keys + SCANNED,
            None => keys,
        };
        let least = digits(names - 1);
        if key_size < least {
            let scanned = match self.scan {
                Some(_) => " and those of --scan-every",
                None => "",
            };
            return Err(format!(
                "--key-size {key_size} is too short for the names of --keys {keys}{scanned}; give at least \
                 {least}"
            ));
        }
        if self.scan.is_some() && !self.miss_set {
            return Err(
                "--scan-every without --miss-set would store nothing of a scan; add --miss-set"
                    .to_owned(),
            );
        }
        if self.miss_set && self.get_ratio == 0.0 {
            return Err(
                "--miss-set with --get-ratio 0 has no get that could miss; leave one out"
                    .to_owned(),
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(options: Options, words: &[&str]) {
        let why = options.check().unwrap_err();
        assert!(words.iter().all(|word| why.contains(word)), "{why}");
    }

    #[test]
    fn contradictions_are_refused() {
        let usual = Options::default;
        assert_eq!(usual().check(), Ok(()));
        let threads = Options {
            threads: 65,
            ..usual()
        };
        refused(threads, &["--threads 65", "--connections 64"]);
        let short = Options {
            key_size: 4,
            ..usual()
        };
        refused(short, &["--key-size 4", "--keys 1000000", "at least 5"]);
        let scan = Some(Scan {
            every: 10,
            length: 10,
        });
        let unstored = Options { scan, ..usual() };
        refused(unstored, &["--scan-every", "--miss-set"]);
        let narrow = Options {
            scan,
            miss_set: true,
            key_size: 8,
            ..usual()
        };
        refused(narrow, &["--key-size 8", "--scan-every", "at least 11"]);
        let sets = Options {
            miss_set: true,
            get_ratio: 0.0,
            ..usual()
        };
        refused(sets, &["--miss-set", "--get-ratio 0"]);
    }
}

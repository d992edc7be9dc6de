//! Speed techniques. Each has a file of its own that gives its name in the literature, its contract
//! and what it gains; its tests compare it with the plain version.
//!
//! | file | technique | used by |
//! |---|---|---|
//! | `bloom.rs` | Bloom filter | deduplication |
//! | `hash.rs` | folded multiplication, keyed `SipHash` | contents, long tags |
//! | `interner.rs` | interning in an open-addressed hash table | deduplication, tags, tag sets |
//! | `parallel.rs` | data parallelism (feature `rayon`) | scoring, sorting, many requests |
//! | `prefetch.rs` | software prefetching | tags |
//! | `radix.rs` | MSD radix sort | every sort of packed keys |
//! | `tag_key.rs` | short strings held inline | tag comparison |
//!
//! Gains are ratios of the CPU time of whole runs without and with the technique, medians of 15 paired
//! runs, hot (the same run repeated) and cold (after other work has used the caches). Other work ran on the
//! machine meanwhile: ratios of times below 1.2 are within the noise, so instructions are compared there
//! (callgrind, the difference of three runs and one).

pub(crate) mod bloom;
pub(crate) mod hash;
pub(crate) mod interner;
pub(crate) mod parallel;
pub(crate) mod prefetch;
pub(crate) mod radix;
pub(crate) mod tag_key;

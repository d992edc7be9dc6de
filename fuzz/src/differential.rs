//! The library against the oracle.

use cupel_conformance::model::{Budget, Item, ScoredItem, Task};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::json;

use crate::adapter::Surface;
use crate::{arbitrary, comparison, oracle};

/// Runs one of the property tests' tasks. The input is the seed of their random numbers.
pub(crate) fn run(data: &[u8]) {
    let Some((&choice, data)) = data.split_first() else {
        return;
    };
    let task = match choice % 6 {
        0 => generate(arbitrary::extreme_run(), data),
        1 => generate(arbitrary::score(), data),
        2 => generate(arbitrary::slice(), data),
        3 => generate(arbitrary::place(), data),
        4 => generate(arbitrary::tied_knapsack(), data),
        _ => generate(arbitrary::run(), data),
    };
    if let Some(task) = task {
        compare(&task);
    }
}

fn generate(tasks: impl Strategy<Value = Task>, data: &[u8]) -> Option<Task> {
    // Not `PassThrough`: it returns zeros after the input, on which rejection sampling never ends.
    let mut seed = [0; 32];
    for (position, byte) in data.iter().enumerate() {
        seed[position % 32] ^= byte;
    }
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let tree = tasks.new_tree(&mut runner).ok()?;
    Some(tree.current())
}

/// Solves one knapsack, with many ties, by the library and by the specification's literal table.
pub(crate) fn knapsack(data: &[u8]) {
    let &[bucket_size, target_high, target_low, ref items @ ..] = data else {
        return;
    };
    let target_tokens = i64::from(u16::from_be_bytes([target_high, target_low]) % 2_000);
    let item = |bytes: &[u8; 2]| ScoredItem {
        item: Item {
            content: "x".into(),
            tokens: (bytes[0] % 100).into(),
            ..Item::default()
        },
        score: match bytes[1] {
            255 => f64::NAN,
            254 => f64::INFINITY,
            253 => -1.0,
            level => f64::from(level % 21) / 20.0,
        },
    };
    let (pairs, _) = items.as_chunks();
    let mut items: Vec<ScoredItem> = pairs.iter().take(64).map(item).collect();
    items.sort_by(|a, b| {
        let by_score = b.score.partial_cmp(&a.score);
        by_score.unwrap_or_else(|| a.score.is_nan().cmp(&b.score.is_nan()))
    });
    compare(&Task::Slice {
        slicer: json!({ "type": "knapsack", "bucket_size": bucket_size % 16 + 1 }),
        budget: Budget {
            max_tokens: target_tokens,
            target_tokens,
            ..Budget::default()
        },
        items,
    });
}

fn compare(task: &Task) {
    let expected = oracle::observe(task);
    for surface in Surface::ALL {
        if let Err(difference) = comparison::compare(*surface, task, &expected) {
            panic!("{difference}\ntask {task:#?}");
        }
    }
}

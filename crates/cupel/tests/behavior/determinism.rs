//! The same input gives the same bytes: again, rebuilt, on another thread, in another process, from
//! other hash maps.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::hash::{BuildHasher as _, RandomState};
use std::path::{Path, PathBuf};
use std::process::Command;

use cupel::{
    ChronologicalPlacer, ContextBudget, ContextItem, ContextKind, CupelError, KindScorer, Placer,
    Policy, ScoredItem, ScoredRef, Scorer, SelectionReport, TagScorer, UShapedPlacer,
};

use super::{
    Random, RandomRuns, at, build, contents, kind, owned, policies, policy, scored, timeless,
};

/// A report as bytes, without its times.
#[cfg(feature = "serde")]
fn bytes(report: SelectionReport) -> String {
    serde_json::to_string(&timeless(report)).expect("a report can be written")
}

/// A report as bytes, without its times and without the maps in its items.
#[cfg(not(feature = "serde"))]
fn bytes(report: SelectionReport) -> String {
    let report = timeless(report);
    let included = report.included.iter();
    let included = included.map(|e| (e.item.content(), e.score.to_bits(), e.reason));
    let excluded = report.excluded.iter();
    let excluded = excluded.map(|e| (e.item.content(), e.score.to_bits(), &e.reason));
    let lists = (included.collect::<Vec<_>>(), excluded.collect::<Vec<_>>());
    let shortfalls = &report.count_requirement_shortfalls;
    format!("{:?} {lists:?} {shortfalls:?}", report.events)
}

fn run(
    policy: &Policy,
    items: &[ContextItem],
    budget: &ContextBudget,
) -> Result<String, CupelError> {
    policy.dry_run(items, budget).map(bytes)
}

/// Every policy over inputs that depend on nothing but the seed, all built anew.
fn everything(seed: u64) -> Vec<Result<String, CupelError>> {
    let mut random = Random::new(seed);
    let mut results = Vec::new();
    for builder in policies() {
        let policy = builder.build().unwrap();
        for _ in 0..10 {
            let (items, budget) = random.run();
            let result = run(&policy, &items, &budget);
            assert_eq!(run(&policy, &items, &budget), result, "again");
            results.push(result);
        }
    }
    results
}

// proves: GEN-1, GREEDY-15, PLACER-2, SCORER-2, R070, R074
#[test]
fn the_same_input_gives_the_same_bytes_again_and_rebuilt() {
    let first = everything(31);
    assert!(first.iter().any(Result::is_ok) && first.iter().any(Result::is_err));
    assert_eq!(everything(31), first);
}

// proves: GEN-1, DIAG-2
#[test]
fn every_thread_gives_the_same_bytes() {
    let here = everything(32);
    let there = std::thread::scope(|scope| {
        let threads = [(); 2].map(|()| scope.spawn(|| everything(32)));
        threads.map(|thread| thread.join().unwrap())
    });
    assert!(there.iter().all(|results| *results == here));
}

/// Every answer of a process: runs, and simulations over items whose maps have many keys.
fn answers() -> String {
    let mut answers = String::new();
    for result in everything(31) {
        writeln!(answers, "{result:?}").unwrap();
    }
    // Sums of these weights depend on their order in the last bits.
    let weights = (1..20_u8).map(|n| (format!("tag {n}"), 0.1 * f64::from(n)));
    let by_tag = policy().scorer(TagScorer::new(weights.collect()).unwrap());
    let items: Vec<ContextItem> = (0..12_i64)
        .map(|n| {
            let metadata = (0..12).map(|key| (format!("key {key}"), n.to_string()));
            let tags = (1..=n).map(|tag| format!("tag {tag}"));
            let item = ContextItem::builder(n.to_string(), 5 + n % 7)
                .metadata(metadata.collect())
                .future_relevance_hint(0.5);
            build(item.tags(tags.collect()).kind(kind(&(n % 3).to_string())))
        })
        .collect();
    let slots = (0..6).map(|n| (kind(&n.to_string()), n));
    let budget = ContextBudget::new(80, 60, 0, slots.collect(), 5.0).unwrap();
    for builder in policies().into_iter().chain([by_tag]) {
        let pipeline = builder.build().unwrap();
        let report = pipeline.dry_run(&items, &budget).map(bytes);
        let marginal = pipeline.get_marginal_items(&items, &budget, 9);
        let marginal = marginal.map(|items| owned(&contents(&items)));
        let least = pipeline.find_min_budget_for(&items, &budget, &items[3], 500);
        writeln!(answers, "{report:?} {marginal:?} {least:?}").unwrap();
    }
    answers
}

/// The file a child process writes its answers to.
const CHILD_FILE: &str = "CUPEL_TEST_CHILD_FILE";

/// Runs the calling test in a process of its own and returns what it wrote: a hash and answers.
fn answers_of_a_child(test: &str, file: &Path) -> (String, String) {
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--quiet"])
        .env(CHILD_FILE, file)
        .stdout(std::process::Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    let text = std::fs::read_to_string(file).expect("the child ran the test");
    std::fs::remove_file(file).unwrap();
    let (hash, answers) = text.split_once('\n').unwrap();
    (hash.to_owned(), answers.to_owned())
}

// proves: SIM-1, SIM-3, GEN-1
#[test]
fn processes_with_other_hash_seeds_give_the_same_bytes() {
    let hash = RandomState::new().hash_one("the same text").to_string();
    if let Some(file) = std::env::var_os(CHILD_FILE) {
        return std::fs::write(file, format!("{hash}\n{}", answers())).unwrap();
    }
    let mut hashes = vec![hash];
    let expected = answers();
    for child in 0..3 {
        let file = format!("determinism-{}-{child}", std::process::id());
        let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(file);
        let test = "behavior::determinism::processes_with_other_hash_seeds_give_the_same_bytes";
        let (hash, answers) = answers_of_a_child(test, &file);
        assert!(answers == expected, "{answers}\n---\n{expected}");
        assert!(!hashes.contains(&hash), "the processes share a hash seed");
        hashes.push(hash);
    }
}

/// The same entries inserted in many orders, into maps of as many hash seeds.
fn maps<K: std::hash::Hash + Eq + Clone, V: Clone>(entries: &[(K, V)]) -> Vec<HashMap<K, V>> {
    let forwards = (0..entries.len()).map(|first| {
        let (head, tail) = entries.split_at(first);
        tail.iter().chain(head).cloned().collect()
    });
    let backwards = (0..entries.len()).map(|_| entries.iter().rev().cloned().collect());
    forwards.chain(backwards).collect()
}

fn check_equal<T: PartialEq + std::fmt::Debug>(values: impl IntoIterator<Item = T>) {
    let mut values = values.into_iter();
    let first = values.next().expect("at least one");
    values.for_each(|value| assert_eq!(value, first));
}

// proves: TAG-1, R051
#[test]
fn tag_weights_score_alike_from_any_map() {
    // Sums of these depend on their order in the last bits.
    let weights: Vec<_> = (1..20_u8)
        .map(|n| (format!("tag {n}"), 0.1 * f64::from(n)))
        .collect();
    let item = build(
        ContextItem::builder("x", 1)
            .tag("tag 7")
            .tag("tag 3")
            .tag("tag 11"),
    );
    let scorers = maps(&weights)
        .into_iter()
        .map(|map| TagScorer::new(map).unwrap());
    check_equal(scorers.map(|scorer| scorer.score(&item, &[]).to_bits()));
}

#[test]
fn a_faulty_map_is_refused_with_the_same_words() {
    let tags = [("b", -1.0), ("a", f64::NAN), ("c", -2.0), ("d", 1.0)];
    let tags = tags.map(|(tag, weight)| (tag.to_owned(), weight));
    check_equal(
        maps(&tags)
            .into_iter()
            .map(|map| TagScorer::new(map).unwrap_err()),
    );
    let kinds = [("b", -1.0), ("a", f64::NAN), ("c", -2.0)];
    let kinds = kinds.map(|(name, weight)| (kind(name), weight));
    check_equal(
        maps(&kinds)
            .into_iter()
            .map(|map| KindScorer::new(map).unwrap_err()),
    );
    let slots = [("b", -1), ("a", 4), ("c", -2), ("d", -1)];
    let slots = slots.map(|(name, slot)| (kind(name), slot));
    let budgets = maps(&slots).into_iter();
    check_equal(budgets.map(|map| ContextBudget::new(9, 9, 0, map, 0.0).unwrap_err()));
}

// proves: KIND-3, BUDGET-10
#[test]
fn kinds_are_found_in_any_map_in_any_spelling() {
    let names = ["Message", "Document", "ToolOutput", "Memory", "Own"];
    let weights: Vec<_> = names.iter().map(|name| (kind(name), 0.1)).collect();
    let shouted: Vec<ContextItem> = names
        .iter()
        .map(|name| build(ContextItem::builder("x", 1).kind(kind(&name.to_uppercase()))))
        .collect();
    let scorers = maps(&weights)
        .into_iter()
        .map(|map| KindScorer::new(map).unwrap());
    check_equal(scorers.map(|scorer| scorer.score_all(&shouted).unwrap()));
    let slots: Vec<(ContextKind, i64)> = names.iter().map(|name| (kind(name), 3)).collect();
    for map in maps(&slots) {
        let budget = ContextBudget::new(100, 100, 0, map, 0.0).unwrap();
        assert_eq!(budget.effective(5).target_tokens(), 80);
        assert_eq!(budget.reserved_slots()[&kind("OWN")], 3);
    }
}

// proves: PLACER-2
#[test]
fn a_placer_gives_the_same_order_for_the_same_input() {
    let mut random = Random::new(33);
    for placer in [&UShapedPlacer as &dyn Placer, &ChronologicalPlacer] {
        for _ in 0..200 {
            let items = (0..random.below(9)).map(|_| {
                let score = random.pick(&[0.0, -0.0, 0.5, 1.0, f64::NAN, f64::INFINITY]);
                let dated = ContextItem::builder("x", 1).timestamp(at(random.pick(&[0, 1, 2])));
                let undated = scored("x", 1, score).item;
                let item = if random.below(3) > 0 {
                    build(dated)
                } else {
                    undated
                };
                ScoredItem { item, score }
            });
            let items: Vec<_> = items.collect();
            let refs = ScoredRef::from_list(&items);
            let order = placer.arrange(&refs).unwrap();
            check_equal([order.clone(), placer.arrange(&refs).unwrap()]);
            let placed = placer.place(&items);
            assert_eq!(placed.len(), items.len());
            for (item, position) in placed.iter().zip(order) {
                assert!(item.is_same(&items[position].item));
            }
        }
    }
}

#[cfg(feature = "serde")]
// proves: R107
#[test]
fn maps_are_written_in_the_order_of_their_keys() {
    let entries: Vec<_> = (0..12)
        .map(|n| (format!("key {n}"), n.to_string()))
        .collect();
    let items = maps(&entries).into_iter().map(|map| {
        let item = build(ContextItem::builder("x", 1).metadata(map));
        serde_json::to_string(&item).unwrap()
    });
    check_equal(items);
    let slots: Vec<_> = (0..12).map(|n| (kind(&format!("kind {n}")), n)).collect();
    let budgets = maps(&slots).into_iter().map(|map| {
        let budget = ContextBudget::new(99, 99, 0, map, 0.0).unwrap();
        serde_json::to_string(&budget).unwrap()
    });
    check_equal(budgets);
}

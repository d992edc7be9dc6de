//! [`EmbeddingScorer`] against naive cosines.

use cupel::*;
use cupel_conformance::testing::Random;

fn item(content: &str, vector: Option<&str>) -> ContextItem {
    let item = ContextItem::builder(content, 1);
    let item = match vector {
        Some(vector) => item.meta(EmbeddingScorer::KEY, vector),
        None => item,
    };
    item.build().unwrap()
}

fn cosine(a: &[f64], b: &[f64]) -> f64 {
    let norm = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
    let dot: f64 = a.iter().zip(b).map(|(x, y)| x * y).sum();
    let all = norm(a) * norm(b);
    if all == 0.0 {
        0.0
    } else {
        (dot / all).max(0.0)
    }
}

fn wide(vector: &[f32]) -> Vec<f64> {
    vector.iter().copied().map(f64::from).collect()
}

#[test]
fn given_vectors_score_by_their_cosine() {
    let mut random = Random::new(41);
    let mut numbers = || -> Vec<f32> {
        let number = |_| f32::from(i8::try_from(random.within(-5..=9)).unwrap());
        (0..4).map(number).collect()
    };
    for _ in 0..50 {
        let query = numbers();
        let vectors: Vec<Vec<f32>> = (0..10).map(|_| numbers()).collect();
        let items: Vec<ContextItem> = vectors
            .iter()
            .enumerate()
            .map(|(index, vector)| {
                let text: Vec<String> = vector.iter().map(f32::to_string).collect();
                let text = [text.join(", "), format!("[{}]", text.join(" "))];
                item(&index.to_string(), (index < 5).then(|| &*text[index % 2]))
            })
            .collect();
        let by_content = (5..10).map(|index| (index.to_string(), vectors[index].clone()));
        let scorer = EmbeddingScorer::new(query.clone()).unwrap();
        let scorer = scorer.with_vectors(by_content).unwrap();
        let scores = scorer.score_all(&items).unwrap();
        for (index, score) in scores.into_iter().enumerate() {
            assert!((score - cosine(&wide(&query), &wide(&vectors[index]))).abs() < 1e-12);
            assert_eq!(
                scorer.score(&items[index], &items).to_bits(),
                score.to_bits()
            );
        }
    }
}

#[test]
fn faults_of_vectors_are_named() {
    let text = |error: CupelError| error.to_string();
    assert!(EmbeddingScorer::new(Vec::<f32>::new()).is_err());
    assert!(EmbeddingScorer::new([f32::NAN]).is_err());
    let scorer = || EmbeddingScorer::new([1.0, 2.0]).unwrap();
    let error = text(scorer().with_vectors([("x", vec![1.0])]).unwrap_err());
    assert!(
        error.contains("the vector of \"x\" has 1 numbers; it needs 2"),
        "{error}"
    );
    let error = text(scorer().score_all(&[item("y", Some("1"))]).unwrap_err());
    assert!(
        error.contains("the vector of \"y\" has 1 numbers"),
        "{error}"
    );
    let error = text(scorer().score_all(&[item("y", Some("1,inf"))]).unwrap_err());
    assert!(error.contains("`inf` in metadata"), "{error}");
    let error = scorer().score_all(&[item("y", Some("1"))]).unwrap_err();
    assert_eq!(error.code(), "InvalidVector");
    assert_eq!(scorer().score_all(&[item("y", None)]), Ok(vec![0.0]));
}

#[cfg(feature = "embeddings")]
mod table {
    use std::collections::BTreeMap;

    use super::*;

    /// A safetensors file with one matrix.
    fn file(dtype: &str, shape: [usize; 2], vocab: Option<&str>, data: &[u8]) -> Vec<u8> {
        let metadata = vocab.map_or(String::new(), |vocab| {
            let vocab = serde_json::to_string(vocab).unwrap();
            format!(r#""__metadata__":{{"vocab":{vocab}}},"#)
        });
        let header = format!(
            r#"{{{metadata}"embedding.weight":{{"dtype":"{dtype}","shape":{shape:?},"data_offsets":[0,{}]}}}}"#,
            data.len()
        );
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        bytes
    }

    fn floats(numbers: &[f32]) -> Vec<u8> {
        numbers
            .iter()
            .flat_map(|number| number.to_le_bytes())
            .collect()
    }

    /// A directory that is removed in the end.
    struct Directory(std::path::PathBuf);

    impl Directory {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("cupel-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn write(&self, name: &str, bytes: &[u8]) -> std::path::PathBuf {
            let path = self.0.join(name);
            std::fs::write(&path, bytes).unwrap();
            path
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn texts_score_by_the_weighted_mean_of_their_words() {
        let words = ["red", "blue", "sky", "car", "fast"];
        let vectors: [[f32; 3]; 5] = [
            [1.0, 0.0, 0.2],
            [0.0, 1.0, 0.1],
            [0.1, 0.9, 0.4],
            [0.5, 0.0, 1.0],
            [0.0, -0.3, 0.9],
        ];
        let values = vectors.iter().flatten().copied();
        let words_owned = words.map(String::from).to_vec();
        let table = WordVectors::new(words_owned, values.collect()).unwrap();
        let texts = [
            "The red car",
            "Blue sky, blue car",
            "fast",
            "nothing known",
            "sky sky red fast",
        ];
        let items = texts.map(|text| item(text, None));
        let query = "A fast red car";
        // Counts of the known words, by hand.
        let counts = |text: &str| -> BTreeMap<usize, f64> {
            let mut counts = BTreeMap::new();
            let text = text.to_lowercase();
            for word in text.split(|c: char| !c.is_alphanumeric()) {
                if let Some(at) = words.iter().position(|known| *known == word) {
                    *counts.entry(at).or_insert(0.0) += 1.0;
                }
            }
            counts
        };
        let idf = |at: usize| {
            let having = texts
                .iter()
                .filter(|text| counts(text).contains_key(&at))
                .count() as f64;
            (1.0 + (texts.len() as f64 - having + 0.5) / (having + 0.5)).ln()
        };
        let mean = |text: &str| {
            let mut sum = vec![0.0; 3];
            for (at, count) in counts(text) {
                for (sum, number) in sum.iter_mut().zip(vectors[at]) {
                    *sum += count * idf(at) * f64::from(number);
                }
            }
            sum
        };
        let table = std::sync::Arc::new(table);
        let scorer = EmbeddingScorer::from_table(table.clone());
        assert!(scorer.score_all(&items).is_err(), "there is no query yet");
        let scorer = scorer.with_query(&query.into()).unwrap();
        assert!(scorer.with_query(&query.into()).is_none());
        let scores = scorer.score_all(&items).unwrap();
        for (index, text) in texts.iter().enumerate() {
            let expected = cosine(&mean(query), &mean(text));
            assert!((scores[index] - expected).abs() < 1e-9, "{text}");
            let alone = scorer.score(&items[index], &items);
            assert_eq!(alone.to_bits(), scores[index].to_bits());
        }
        assert_eq!(scores[3], 0.0);

        // Of several texts each counts with its weight, however many words it has.
        let weighted = |query: &str, weight: f64| {
            let total: f64 = counts(query)
                .iter()
                .map(|(&at, count)| count * idf(at))
                .sum();
            mean(query)
                .into_iter()
                .map(move |number| weight * number / total)
        };
        let long = "sky sky sky blue";
        let both = weighted(query, 1.0).zip(weighted(long, 0.5));
        let both: Vec<f64> = both.map(|(one, other)| one + other).collect();
        let scorer = EmbeddingScorer::from_table(table.clone());
        let scorer = scorer
            .with_query(&Query::from(query).and(long, 0.5))
            .unwrap();
        let scores = scorer.score_all(&items).unwrap();
        for (index, text) in texts.iter().enumerate() {
            let expected = cosine(&both, &mean(text));
            assert!((scores[index] - expected).abs() < 1e-9, "{text}");
        }
    }

    #[test]
    fn tables_are_read_with_words_inside_or_beside() {
        let directory = Directory::new("tables");
        let vocab = r#"["Cat","dog"]"#;
        let whole = floats(&[1.0, 0.0, 0.0, 1.0]);
        let half: Vec<u8> = [0x3c00_u16, 0, 0, 0x3c00]
            .iter()
            .flat_map(|it| it.to_le_bytes())
            .collect();
        let inside = directory.write("a.safetensors", &file("F32", [2, 2], Some(vocab), &whole));
        let beside = directory.write("b.safetensors", &file("F16", [2, 2], None, &half));
        directory.write("b.txt", b"Cat\ndog\n");
        for path in [inside, beside] {
            let table = WordVectors::from_path(&path).unwrap();
            assert_eq!(table.dimension(), 2);
            let scorer = EmbeddingScorer::from_table(table);
            let scorer = scorer.with_query(&"cat".into()).unwrap();
            let items = [item("CAT", None), item("dog", None)];
            assert_eq!(scorer.score_all(&items), Ok(vec![1.0, 0.0]));
            #[cfg(feature = "documents")]
            {
                let json = format!(r#"{{"scorer": {{"type": "embedding", "table": {path:?}}}}}"#);
                let policy = {
                    use cupel::config::{Document, Format};
                    let document = Document::parse(&json, Format::Json).unwrap();
                    document.policy().unwrap()
                };
                assert!(policy.needs_query());
                let config = cupel::config::PolicyConfig::of(&policy).unwrap();
                assert_eq!(
                    config.scorer,
                    config.build().unwrap().scorer().to_config().unwrap()
                );
            }
        }
    }

    #[test]
    fn faults_of_a_file_name_it_and_the_fix() {
        let directory = Directory::new("faults");
        let whole = floats(&[1.0, 0.0, 0.0, 1.0]);
        let vocab = Some(r#"["cat","dog"]"#);
        for (bytes, expected) in [
            (b"short".to_vec(), "not a safetensors file"),
            (9_u64.to_le_bytes().to_vec(), "not a safetensors file"),
            (
                file("F32", [2, 2], None, &whole),
                "no metadata entry `vocab`",
            ),
            (
                file("F32", [2, 2], Some("{}"), &whole),
                "must be a JSON array of strings",
            ),
            (file("I8", [2, 2], vocab, &whole), "must be F16 or F32"),
            (
                file("F32", [2, 3], vocab, &whole),
                "does not have the numbers of its shape",
            ),
            (
                file("F32", [4, 1], vocab, &whole),
                "the matrix has 4 rows, but there are 2 words",
            ),
            (
                file("F32", [2, 2], vocab, &floats(&[1.0, f32::NAN, 0.0, 1.0])),
                "must be finite",
            ),
        ] {
            let path = directory.write("table.safetensors", &bytes);
            let error = WordVectors::from_path(&path).unwrap_err().to_string();
            assert!(error.contains("table.safetensors"), "{error}");
            assert!(error.contains(expected), "{error}");
        }
        let error = WordVectors::from_path("missing.safetensors")
            .unwrap_err()
            .to_string();
        assert!(error.contains("cannot read missing.safetensors"), "{error}");
    }
}

#[cfg(feature = "serde")]
#[test]
fn a_scorer_is_data_unless_it_has_vectors_of_its_own() {
    let scorer = EmbeddingScorer::new([1.0, 0.0]).unwrap();
    assert!(scorer.to_config().is_ok());
    let scorer = scorer.with_vectors([("text", vec![0.5, 0.5])]).unwrap();
    assert!(scorer.to_config().is_err());
}

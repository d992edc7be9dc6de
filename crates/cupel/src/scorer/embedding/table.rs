//! [`WordVectors`]: a static table of word vectors in the safetensors format.

use std::collections::HashMap;
use std::path::Path;

use serde_json::Value;

use super::Among;
use crate::fast::parallel;
use crate::scorer::relevance::{each_word, normalize};
use crate::{ContextItem, CupelError, Query, vector};

/// A table of word vectors, read from a [safetensors](https://github.com/huggingface/safetensors) file.
///
/// The file has one matrix of 16-bit or 32-bit floating-point numbers (`F16`, `F32`), one row per word. The words are a
/// JSON array of strings in the file's metadata entry `vocab`, or the lines of a text file of the same name
/// with the extension `txt`. Words are looked up in lowercase.
///
/// ```
/// use cupel::{ContextItem, EmbeddingScorer, Policy, Scorer, WordVectors};
///
/// let words = ["cat", "kitten", "rain"].map(String::from).to_vec();
/// let table = WordVectors::new(words, vec![1.0, 0.0, 0.8, 0.6, 0.0, 1.0])?;
/// let scorer = EmbeddingScorer::from_table(table).with_query(&"cat".into()).unwrap();
/// let item = |content: &str| ContextItem::builder(content, 1).build();
/// let scores = scorer.score_all(&[item("A kitten!")?, item("Rain.")?])?;
/// assert!((scores[0] - 0.8).abs() < 1e-6);
/// assert_eq!(scores[1], 0.0);
/// # Ok::<(), cupel::CupelError>(())
/// ```
#[derive(Debug, Clone)]
pub struct WordVectors {
    rows: HashMap<String, u32>,
    /// The rows one after the other.
    values: Vec<f32>,
    dimension: usize,
    path: Option<String>,
}

impl WordVectors {
    /// Creates a table from its words and their vectors, one after the other.
    ///
    /// # Errors
    ///
    /// [`CupelError::ScorerConfig`] if there is no word, the numbers do not divide evenly among the words, or one
    /// is not finite.
    pub fn new(words: Vec<String>, values: Vec<f32>) -> Result<Self, CupelError> {
        let dimension = values.len() / words.len().max(1);
        if dimension == 0 || dimension * words.len() != values.len() {
            return Err(CupelError::ScorerConfig(format!(
                "{} numbers are not the vectors of {} words",
                values.len(),
                words.len()
            )));
        }
        if !values.iter().all(|number| number.is_finite()) {
            return Err(CupelError::ScorerConfig(
                "the numbers of a table must be finite".to_owned(),
            ));
        }
        let mut rows = HashMap::with_capacity(words.len());
        for (word, row) in words.into_iter().zip(0..) {
            // Of several spellings of a word the first one is used.
            rows.entry(normalize(&word).to_lowercase()).or_insert(row);
        }
        Ok(Self {
            rows,
            values,
            dimension,
            path: None,
        })
    }

    /// Reads a table from a safetensors file.
    ///
    /// # Errors
    ///
    /// [`CupelError::ScorerConfig`] with the file and what is wrong with it.
    ///
    /// ```no_run
    /// let table = cupel::WordVectors::from_path("vectors.safetensors")?;
    /// # Ok::<(), cupel::CupelError>(())
    /// ```
    pub fn from_path(path: impl AsRef<Path>) -> Result<Self, CupelError> {
        let path = path.as_ref();
        let fault = |text: String| CupelError::ScorerConfig(format!("{}: {text}", path.display()));
        let read = |path: &Path| {
            let cannot = |error| {
                CupelError::ScorerConfig(format!("cannot read {}: {error}", path.display()))
            };
            #[expect(clippy::disallowed_methods, reason = "reads the file of its argument")]
            std::fs::read(path).map_err(cannot)
        };
        let bytes = read(path)?;
        let file = File::parse(&bytes).map_err(|text| fault(text.to_owned()))?;
        let words = match file.words {
            Some(words) => words,
            None => {
                let beside = path.with_extension("txt");
                let text = read(&beside).map_err(|error| {
                    fault(format!(
                        "no metadata entry `vocab` with the words; add it, or a text file with one word per line ({error})"
                    ))
                })?;
                let text = String::from_utf8(text)
                    .map_err(|_| fault(format!("{} is not UTF-8", beside.display())))?;
                text.lines().map(str::to_owned).collect()
            }
        };
        if words.len() != file.rows {
            return Err(fault(format!(
                "the matrix has {} rows, but there are {} words; give one word per row",
                file.rows,
                words.len()
            )));
        }
        let mut table = Self::new(words, file.values).map_err(|error| fault(error.to_string()))?;
        table.path = path.to_str().map(str::to_owned);
        Ok(table)
    }

    /// Returns the length of the vectors.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// Returns the file that the table was read from.
    #[cfg_attr(not(feature = "serde"), expect(dead_code, reason = "for documents"))]
    pub(super) fn path(&self) -> Option<&str> {
        self.path.as_deref()
    }

    /// Returns the rows of the known words of a text, in order.
    fn words(&self, text: &str) -> Vec<u32> {
        let mut rows = Vec::new();
        each_word(text, |word| rows.extend(self.rows.get(word)));
        rows
    }

    /// Returns the weighted mean of the vectors of words; zeros if there is none.
    fn mean(&self, words: &[u32], weight: impl Fn(u32) -> f64) -> Vec<f64> {
        let mut sum = vec![0.0; self.dimension];
        let mut total = 0.0;
        for &row in words {
            let weight = weight(row);
            let start = row as usize * self.dimension;
            let vector = &self.values[start..start + self.dimension];
            for (sum, &number) in sum.iter_mut().zip(vector) {
                *sum += weight * f64::from(number);
            }
            total += weight;
        }
        if total > 0.0 {
            for number in &mut sum {
                *number /= total;
            }
        }
        sum
    }

    /// Returns the similarity of every item that takes part to the query.
    pub(super) fn scores(&self, query: &Query, items: &[ContextItem], among: Among) -> Vec<f64> {
        let words = parallel::map(items, |_, item| {
            let takes_part = among.includes(item);
            takes_part.then(|| self.words(item.content()))
        });
        let mut frequencies: HashMap<u32, u32> = HashMap::new();
        let mut count = 0;
        for words in words.iter().flatten() {
            let mut distinct = words.clone();
            distinct.sort_unstable();
            distinct.dedup();
            for row in distinct {
                *frequencies.entry(row).or_default() += 1;
            }
            count += 1;
        }
        // The inverse document frequency of BM25.
        let idf = |row: u32| {
            let frequency = f64::from(frequencies.get(&row).copied().unwrap_or(0));
            ((f64::from(count) - frequency + 0.5) / (frequency + 0.5)).ln_1p()
        };
        let mut question = vec![0.0; self.dimension];
        for (text, weight) in query.relative_texts() {
            let mean = self.mean(&self.words(text), idf);
            for (sum, number) in question.iter_mut().zip(mean) {
                *sum += weight * number;
            }
        }
        parallel::map(&words, |_, words| match words {
            Some(words) => vector::cosine(&self.mean(words, idf), &question),
            None => 0.0,
        })
    }
}

/// The content of a safetensors file.
struct File {
    rows: usize,
    values: Vec<f32>,
    words: Option<Vec<String>>,
}

impl File {
    /// Parses the length of the header, the header and the matrix.
    fn parse(bytes: &[u8]) -> Result<Self, &'static str> {
        const NOT_SAFETENSORS: &str = "not a safetensors file";
        let (length, rest) = bytes.split_first_chunk::<8>().ok_or(NOT_SAFETENSORS)?;
        let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| NOT_SAFETENSORS)?;
        let (header, data) = rest.split_at_checked(length).ok_or(NOT_SAFETENSORS)?;
        let header: Value = serde_json::from_slice(header).map_err(|_| NOT_SAFETENSORS)?;
        let tensors = header.as_object().ok_or(NOT_SAFETENSORS)?;
        let matrices: Vec<&Value> = tensors
            .values()
            .filter(|tensor| tensor["shape"].as_array().is_some_and(|it| it.len() == 2))
            .collect();
        let [matrix] = matrices[..] else {
            return Err("it must have one matrix of word vectors");
        };
        let size = |value: &Value| value.as_u64().and_then(|size| usize::try_from(size).ok());
        let number = |list: &str, index: usize| size(&matrix[list][index]).ok_or(NOT_SAFETENSORS);
        let (rows, columns) = (number("shape", 0)?, number("shape", 1)?);
        let (start, end) = (number("data_offsets", 0)?, number("data_offsets", 1)?);
        let data = data.get(start..end).ok_or("the file is truncated")?;
        let count = rows.checked_mul(columns).ok_or(NOT_SAFETENSORS)?;
        let values: Vec<f32> = match matrix["dtype"].as_str() {
            Some("F32") => {
                let numbers = data.as_chunks().0.iter();
                numbers.map(|bytes| f32::from_le_bytes(*bytes)).collect()
            }
            Some("F16") => {
                let numbers = data.as_chunks().0.iter();
                numbers
                    .map(|bytes| from_half(u16::from_le_bytes(*bytes)))
                    .collect()
            }
            _ => return Err("the numbers of the matrix must be F16 or F32; convert them"),
        };
        if values.len() != count {
            return Err("the matrix does not have the numbers of its shape");
        }
        let words =
            match &header["__metadata__"]["vocab"] {
                Value::String(json) => {
                    let words = serde_json::from_str(json);
                    Some(words.map_err(
                        |_| "the metadata entry `vocab` must be a JSON array of strings",
                    )?)
                }
                _ => None,
            };
        Ok(Self {
            rows,
            values,
            words,
        })
    }
}

/// Converts a 16-bit floating-point number (IEEE 754 binary16).
fn from_half(bits: u16) -> f32 {
    let sign = if bits >> 15 == 0 { 1.0 } else { -1.0 };
    let fraction = f32::from(bits & 0x3ff);
    let magnitude = match (bits >> 10) & 0x1f {
        0 => fraction * 2_f32.powi(-24),
        0x1f if fraction > 0.0 => f32::NAN,
        0x1f => f32::INFINITY,
        exponent => (1024.0 + fraction) * 2_f32.powi(i32::from(exponent) - 25),
    };
    sign * magnitude
}

#[cfg(test)]
mod tests {
    use super::from_half;

    #[test]
    fn half_precision_numbers_are_exact() {
        // From the table of examples in the standard.
        for (bits, number) in [
            (0x0000, 0.0),
            (0x0001, 5.960_464_5e-8),
            (0x03ff, 6.097_555e-5),
            (0x0400, 6.103_515_6e-5),
            (0x3555, 0.333_251_95),
            (0x3c00, 1.0),
            (0x3c01, 1.000_976_6),
            (0x7bff, 65_504.0),
            (0x7c00, f32::INFINITY),
            (0xc000, -2.0),
        ] {
            assert_eq!(from_half(bits), number, "{bits:#x}");
        }
        assert!(from_half(0x7c01).is_nan());
    }
}

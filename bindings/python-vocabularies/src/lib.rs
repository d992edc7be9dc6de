//! The extension module `cupel_vocabularies._vocabularies`: token counts with the crate `tiktoken`, which embeds the
//! vocabularies.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The encodings that `cupel-context` has not itself, by their names there. The crate knows more names for the same
/// vocabularies.
const ENCODINGS: [&str; 5] = ["deepseek_v3", "kimi_k2", "llama3", "mistral_v3", "qwen2"];

/// Texts of more bytes are counted without the GIL. Below, releasing and taking it again costs more than it gains:
/// counting takes 20 to 250 ns per byte.
const LONG: usize = 4_096;

#[pymodule]
mod _vocabularies {
    use super::{ENCODINGS, LONG, PyResult, PyValueError, Python, pyfunction};

    #[expect(non_upper_case_globals, reason = "Python's name")]
    #[pymodule_export]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    /// Returns the names of the encodings.
    #[pyfunction]
    fn encodings() -> Vec<&'static str> {
        ENCODINGS.to_vec()
    }

    /// Counts the tokens of a text. Special tokens count as plain text.
    #[pyfunction]
    fn count(py: Python<'_>, encoding: &str, text: &str) -> PyResult<usize> {
        let known = ENCODINGS.contains(&encoding);
        let found = known.then(|| tiktoken::get_encoding(encoding)).flatten();
        let Some(bpe) = found else {
            return Err(PyValueError::new_err(format!(
                "unknown encoding {encoding:?}; expected one of {}",
                ENCODINGS.join(", ")
            )));
        };
        Ok(if text.len() > LONG {
            py.detach(|| bpe.count(text))
        } else {
            bpe.count(text)
        })
    }
}

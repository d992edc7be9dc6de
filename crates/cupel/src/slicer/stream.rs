//! [`StreamSlice`]: selection from an asynchronous stream.

use std::future::poll_fn;
use std::pin::{Pin, pin};

use futures_core::Stream;

use super::{GreedySlice, Slicer};
use crate::{ContextBudget, ContextItem, CupelError, ScoredItem, ScoredRef};

/// Selects from a stream of scored items without waiting for all of them.
///
/// Reads the stream in batches. [`GreedySlice`] fills each batch, by score per token, into the
/// tokens that remain of the target. Stops reading when the target is full. The result is a subset
/// of the stream within the target (SLICER-6), as with every other slicer. Its total score can be
/// lower than that of a slicer that sees all items.
///
/// Works with any async runtime.
///
/// ```
/// use cupel::{ContextBudget, ContextItem, ScoredItem, StreamSlice};
/// use futures_util::stream;
///
/// # futures_util::FutureExt::now_or_never(async {
/// let scored = |content: &str, score| -> Result<_, cupel::CupelError> {
///     Ok(ScoredItem { item: ContextItem::builder(content, 50).build()?, score })
/// };
/// let source = stream::iter([scored("a", 0.2)?, scored("b", 0.9)?, scored("c", 0.8)?]);
/// let budget = ContextBudget::with_target(100, 100)?;
/// let kept = StreamSlice::new(2)?.slice(source, &budget).await?;
/// let contents: Vec<_> = kept.iter().map(ContextItem::content).collect();
/// assert_eq!(contents, ["b", "a"]); // full after the first batch of two
/// # Ok::<(), cupel::CupelError>(())
/// # }).unwrap()?;
/// # Ok::<(), cupel::CupelError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StreamSlice {
    batch_size: usize,
}

impl StreamSlice {
    /// Creates a slicer that reads `batch_size` items at a time.
    ///
    /// # Errors
    ///
    /// [`CupelError::SlicerConfig`] if `batch_size` is 0.
    pub fn new(batch_size: usize) -> Result<Self, CupelError> {
        if batch_size == 0 {
            return Err(CupelError::SlicerConfig(
                "batch_size must be > 0".to_owned(),
            ));
        }
        Ok(Self { batch_size })
    }

    /// Returns the selected items in the order of their selection. Skips items with a negative token
    /// count.
    ///
    /// # Errors
    ///
    /// Currently none. The signature matches [`Slicer::slice`].
    pub async fn slice(
        &self,
        source: impl Stream<Item = ScoredItem>,
        budget: &ContextBudget,
    ) -> Result<Vec<ContextItem>, CupelError> {
        let mut source = pin!(source);
        let mut remaining = budget.target_tokens();
        let mut kept = Vec::new();
        while remaining > 0 {
            let batch = self.next_batch(source.as_mut()).await;
            let ranked = ScoredRef::from_list(&batch);
            let left = ContextBudget::limits(remaining, remaining);
            for item in GreedySlice.select(&ranked, &left)?.items(&ranked) {
                remaining -= item.tokens();
                kept.push(item);
            }
            if batch.len() < self.batch_size {
                break;
            }
        }
        Ok(kept)
    }

    /// Reads up to `batch_size` items, fewer only at the end of the stream.
    async fn next_batch(
        &self,
        mut source: Pin<&mut impl Stream<Item = ScoredItem>>,
    ) -> Vec<ScoredItem> {
        let mut batch = Vec::new();
        while batch.len() < self.batch_size {
            match poll_fn(|context| source.as_mut().poll_next(context)).await {
                Some(scored) if scored.item.tokens() < 0 => {}
                Some(scored) => batch.push(scored),
                None => break,
            }
        }
        batch
    }
}

impl Default for StreamSlice {
    /// Creates a slicer that reads 32 items at a time.
    fn default() -> Self {
        Self { batch_size: 32 }
    }
}

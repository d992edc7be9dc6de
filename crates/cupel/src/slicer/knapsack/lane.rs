//! SIMD lanes: the inner loop, in a form that the compiler vectorizes.
//!
//! A block of cells is a list of vectors of [`LANES`] cells. One step handles one vector: eight additions,
//! eight comparisons, eight selections, without a branch. The keep bits are shifted into one word per
//! lane, so that they need no shuffling across lanes either:
//!
//! ```text
//! cells     0  1 ... 7 | 8  9 ... 15 | ...     vectors, from the first cell of the block
//! word 0    bit of cell 0, then of cell 8, then of cell 16, ...
//! ```
//!
//! The narrower the type, the more cells a machine vector holds: eight `i16`, or one `i128`. So the
//! narrowest type that holds the total value is used.

use std::ops::{Add, BitAnd, BitOr, Shl, Shr};

/// The number of cells per vector: eight `i16` fill the 16-byte vectors of every 64-bit x86 and ARM, and
/// wider types take several instructions per step.
pub(super) const LANES: usize = 8;

/// An integer type wide enough for the total value of a problem.
pub(super) trait Lane:
    Copy
    + Default
    + Ord
    + Add<Output = Self>
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + Shl<usize, Output = Self>
    + Shr<usize, Output = Self>
    + From<bool>
    + TryFrom<i64>
    + TryInto<i64>
{
    const BITS: usize = 8 * size_of::<Self>();

    /// The number of cells whose keep bits fill one word per lane: 128 for `i16`, 1,024 for `i128`. Whole
    /// blocks are computed, so fewer than a block of cells per row are computed without need.
    const BLOCK: usize = LANES * Self::BITS;
}

impl Lane for i16 {}
impl Lane for i32 {}
impl Lane for i64 {}
impl Lane for i128 {}

/// Evaluates an expression with the narrowest lane type that holds the total value of the rows. No cell
/// exceeds that total, so the additions of [`update_block`] do not overflow.
macro_rules! with_lane {
    ($rows:expr, $lane:ident => $result:expr) => {{
        let total: i128 = $rows.iter().map(|row| i128::from(row.value)).sum();
        if i16::try_from(total).is_ok() {
            type $lane = i16;
            $result
        } else if i32::try_from(total).is_ok() {
            type $lane = i32;
            $result
        } else if i64::try_from(total).is_ok() {
            type $lane = i64;
            $result
        } else {
            type $lane = i128;
            $result
        }
    }};
}
pub(super) use with_lane;

/// Applies the Bellman recursion for a row to one block: `best = max(best, before + value)`.
///
/// `best` holds the values without the row, `before` the values at the capacities smaller by its
/// weight. A cell takes the row only for a strictly greater value (KNAP-9). Returns the keep bits per
/// lane, the first cell in the highest bit.
pub(super) fn update_block<V: Lane>(best: &mut [V], before: &[V], value: V) -> [V; LANES] {
    let mut kept = [V::default(); LANES];
    let before = before.as_chunks::<LANES>().0;
    for (best, before) in best.as_chunks_mut::<LANES>().0.iter_mut().zip(before) {
        for lane in 0..LANES {
            let with_row = before[lane] + value;
            let is_better = with_row > best[lane];
            best[lane] = if is_better { with_row } else { best[lane] };
            // The word is a bit set, so a bit may move into the sign.
            kept[lane] = kept[lane] << 1 | V::from(is_better);
        }
    }
    kept
}

/// Returns `true` if a cell of a block took the row.
pub(super) fn is_kept<V: Lane>(kept: &[V], cell: usize) -> bool {
    // Later cells pushed the bit of this one to the left: the first cell of a lane is in the highest bit.
    let bit = V::BITS - 1 - cell / LANES;
    kept[cell % LANES] >> bit & V::from(true) == V::from(true)
}

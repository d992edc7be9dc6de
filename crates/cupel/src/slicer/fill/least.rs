//! The least target of every item.
//!
//! Let `m` be the least room before item `j + 1` that leaves room for a later item. Before item `j`
//! it is `m` if item `j` needs more than `m` and so is skipped, else `m` and the tokens of item `j`. Going
//! backward from an item, with `m` its own tokens at first, gives its least target.
//!
//! Items of 6, 5 and 3 tokens, in that order:
//!
//! ```text
//! item of 3   m = 3; 5 > 3 is skipped; 6 > 3 is skipped: kept from a target of 3 on
//! item of 5   m = 5; 6 > 5 is skipped: from 5 on
//! item of 6   m = 6: from 6 on
//! ```
//!
//! With 2 instead of 6 the item of 3 has `m = 3`, 5 is skipped, and 2 fits: `m = 5`.
//!
//! One pass goes backward for all items together: at item `j`, for each `m >= tokens`, adds `tokens`. This
//! keeps the order of the values, and item `j` is inserted right below those that grew.
//!
//! The plain way is a sweep of all targets, which visits every change of the window until every item has been
//! kept: 0.5 to 2.3 seconds for 100,000 items, against 0.2 to 0.3.

/// Returns for every item, in the order in which they are taken, the least target at which it is kept;
/// `None` if that is above `last`. All token counts are positive.
pub(super) fn least_targets(tokens: &[i64], last: i64) -> Vec<Option<i64>> {
    let mut least = vec![None; tokens.len()];
    let mut largest_before = Vec::with_capacity(tokens.len());
    let mut all_before = Vec::with_capacity(tokens.len());
    let (mut largest, mut all) = (0, 0);
    for &tokens in tokens {
        largest_before.push(i128::from(largest));
        all_before.push(all);
        largest = tokens.max(largest);
        all += i128::from(tokens);
    }
    let mut rooms = Rooms::default();
    for (item, &tokens) in tokens.iter().enumerate().rev() {
        rooms.insert(tokens.into(), item);
        // With room for the largest of the items before it, none of them is skipped, so the target is the room
        // and the tokens of all of them. Most items are done here after a few dozen steps, so few values are
        // in the list at any time.
        while let Some((room, done)) = rooms.pop_from(largest_before[item]) {
            let target = i64::try_from(room + all_before[item]).ok();
            least[done] = target.filter(|target| *target <= last);
        }
    }
    least
}

/// Rooms with their items, in ascending order, in blocks with an addend each (square-root
/// decomposition): a step costs about the square root of the number of items.
#[derive(Default)]
struct Rooms {
    blocks: Vec<Block>,
}

struct Block {
    /// What every room of the block has grown by.
    addend: i128,
    /// Rooms without the addend, with their items. Never empty.
    rooms: Vec<(i128, usize)>,
}

impl Rooms {
    /// The most rooms per block. A step touches one block room by room and the others by their addend;
    /// 512 balances both for some hundred thousand rooms.
    const BLOCK: usize = 512;

    /// Adds `tokens` to all rooms `>= tokens`, then inserts the room `tokens` below them.
    fn insert(&mut self, tokens: i128, item: usize) {
        let is_below = |block: &Block| block.rooms[0].0 + block.addend < tokens;
        let index = self.blocks.partition_point(is_below).saturating_sub(1);
        let mut blocks = self.blocks[index..].iter_mut();
        let Some(Block { addend, rooms }) = blocks.next() else {
            return self.blocks.push(Block {
                addend: 0,
                rooms: vec![(tokens, item)],
            });
        };
        // Every block after the first one that holds a room of at least `tokens` grows as a whole.
        for block in blocks {
            block.addend += tokens;
        }
        let addend = *addend;
        let at = rooms.partition_point(|(room, _)| room + addend < tokens);
        for (room, _) in &mut rooms[at..] {
            *room += tokens;
        }
        rooms.insert(at, (tokens - addend, item));
        if rooms.len() > Self::BLOCK {
            let rooms = rooms.split_off(Self::BLOCK / 2);
            self.blocks.insert(index + 1, Block { addend, rooms });
        }
    }

    /// Removes the greatest room if it is at least `bound`.
    fn pop_from(&mut self, bound: i128) -> Option<(i128, usize)> {
        let block = self.blocks.last_mut()?;
        let &(room, item) = block.rooms.last()?;
        let room = room + block.addend;
        if room < bound {
            return None;
        }
        block.rooms.pop();
        if block.rooms.is_empty() {
            self.blocks.pop();
        }
        Some((room, item))
    }
}

#[cfg(test)]
mod tests {
    use cupel_conformance::testing::Random;

    use super::*;

    /// Returns the least target by trying all of them.
    fn by_trial(tokens: &[i64], item: usize, last: i64) -> Option<i64> {
        let keeps = |target: &i64| {
            let mut left = *target;
            for &tokens in &tokens[..item] {
                if tokens <= left {
                    left -= tokens;
                }
            }
            tokens[item] <= left
        };
        (1..=last).find(keeps)
    }

    #[test]
    fn the_least_target_is_the_first_that_keeps_the_item() {
        let mut random = Random::new(7);
        for largest in [1, 2, 5, 30, 400] {
            for length in [0, 1, 2, 3, 8, 40] {
                for _ in 0..20 {
                    let tokens = (0..length).map(|_| random.within(1..=largest));
                    let tokens: Vec<i64> = tokens.collect();
                    let last = random.within(1..=2 * largest * length.max(1));
                    let items = 0..tokens.len();
                    let expected: Vec<_> =
                        items.map(|item| by_trial(&tokens, item, last)).collect();
                    assert_eq!(
                        least_targets(&tokens, last),
                        expected,
                        "{tokens:?} to {last}"
                    );
                }
            }
        }
    }

    #[test]
    fn full_blocks_are_split() {
        // One large item first: the rooms of all others stay in the blocks to the end.
        let mut tokens = vec![1 << 40];
        tokens.extend(std::iter::repeat_n(1, 3 * Rooms::BLOCK));
        let least = least_targets(&tokens, i64::MAX);
        assert_eq!(least[0], Some(1 << 40));
        for (item, least) in least.iter().enumerate().skip(1) {
            assert_eq!(*least, i64::try_from(item).ok());
        }
    }

    #[test]
    fn the_least_targets_of_many_items_are_those_of_one_item_at_a_time() {
        let mut random = Random::new(8);
        for largest in [1, 3, 100, 1 << 20] {
            let mut tokens = vec![1 << 40];
            // These split the rooms of the others in the middle of a block.
            tokens.extend((0..20).map(|_| random.within(1..=2_000)));
            tokens.extend((0..3 * Rooms::BLOCK).map(|_| random.within(1..=largest)));
            let least = least_targets(&tokens, i64::MAX);
            for (item, least) in least.into_iter().enumerate() {
                let earlier = tokens[..item].iter().rev();
                let fits =
                    |room: i64, &tokens: &i64| if tokens <= room { room + tokens } else { room };
                assert_eq!(
                    least,
                    Some(earlier.fold(tokens[item], fits)),
                    "{item} to {largest}"
                );
            }
        }
    }

    #[test]
    fn token_counts_may_be_as_large_as_they_get() {
        let tokens = [i64::MAX, i64::MAX - 1, i64::MAX, 1];
        // The third item needs room for itself and the second.
        assert_eq!(
            least_targets(&tokens, i64::MAX),
            [Some(i64::MAX), Some(i64::MAX - 1), None, Some(1)]
        );
    }
}

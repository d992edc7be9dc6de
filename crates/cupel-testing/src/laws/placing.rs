//! The laws of placers.

use cupel::{Placer, ScoredItem, StrategyRole};

use super::{
    BadEntry, Law, LawViolation, borrowed, described, distinct, excerpt, positions, with_score,
};

/// Checks that the placer keeps its laws on these items.
///
/// ```
/// use cupel::UShapedPlacer;
/// use cupel_testing::fixture::scored;
/// use cupel_testing::laws::check_placer;
///
/// let items = [scored("a", 10, 0.9), scored("b", 20, 0.8)];
/// assert_eq!(check_placer(&UShapedPlacer, &items), Ok(()));
/// ```
///
/// # Errors
///
/// Returns the first violation.
pub fn check_placer(
    placer: &(impl Placer + ?Sized),
    items: &[ScoredItem],
) -> Result<(), LawViolation> {
    let broken = |law, finding| {
        let input = described(items, with_score);
        LawViolation::new(StrategyRole::Placer, law, finding, input)
    };
    let complete = |order: Result<Vec<usize>, BadEntry>, method: &str| {
        let order = order.map_err(|entry| broken(Law::Permutation, entry.finding(method)))?;
        if order.len() == items.len() {
            return Ok(order);
        }
        let finding = format!("{method} returned {} of {} items", order.len(), items.len());
        Err(broken(Law::Permutation, finding))
    };
    let place = || complete(positions(items, &placer.place(items)), "`place`");
    let arrange_some = |items: &[ScoredItem]| {
        let order = placer.arrange(&borrowed(items));
        order.map_err(|error| broken(Law::Answers, format!("`arrange` failed: {error}")))
    };
    let arrange = || {
        let order = arrange_some(items)?;
        complete(distinct(&order, items.len()), "`arrange`")
    };

    let from_place = Order("`place`", place()?);
    let from_place_again = Order("`place` again", place()?);
    let from_arrange = Order("`arrange`", arrange()?);
    let from_arrange_again = Order("`arrange` again", arrange()?);
    let equal = [
        (Law::Repeatable, &from_place, &from_place_again),
        (Law::Repeatable, &from_arrange, &from_arrange_again),
        (Law::ArrangeEqualsPlace, &from_place, &from_arrange),
    ];
    for (law, left, right) in equal {
        if let Some(difference) = left.difference(right, items) {
            return Err(broken(law, difference));
        }
    }
    let Some(rule) = placer.rule(&borrowed(items)) else {
        return Ok(());
    };
    // The list itself, every second item, every third item.
    for stride in 1..=3 {
        let members: Vec<usize> = (0..items.len()).step_by(stride).collect();
        let subset: Vec<ScoredItem> = members.iter().map(|&at| items[at].clone()).collect();
        let arranged = arrange_some(&subset)?;
        let from_arrange = Order(
            "`arrange`",
            arranged.into_iter().map(|at| members[at]).collect(),
        );
        let order = rule.order(|position| position % stride == 0);
        let from_rule = Order("`rule`", order);
        if from_rule.1.len() != members.len() {
            let (placed, all) = (from_rule.1.len(), members.len());
            let finding = format!("`rule` places {placed} of {all} items");
            return Err(broken(Law::RuleEqualsArrange, finding));
        }
        if let Some(difference) = from_arrange.difference(&from_rule, items) {
            return Err(broken(Law::RuleEqualsArrange, difference));
        }
    }
    Ok(())
}

/// The positions of placed items, and the call that returned them.
struct Order(&'static str, Vec<usize>);

impl Order {
    fn difference(&self, other: &Self, items: &[ScoredItem]) -> Option<String> {
        let item = |at: usize| &items[at].item;
        let mut pairs = self.1.iter().zip(&other.1).enumerate();
        let (position, (&left, &right)) =
            pairs.find(|(_, (left, right))| !item(**left).is_same(item(**right)))?;
        let content = |at| excerpt(item(at).content());
        Some(format!(
            "position {position} is {} from {} and {} from {}",
            content(left),
            self.0,
            content(right),
            other.0
        ))
    }
}

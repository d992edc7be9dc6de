//! What the constructors refuse and documents cannot state: names twice, and an order of weights.

use cupel::*;

fn tag(name: &str, weight: f64) -> (String, f64) {
    (name.to_owned(), weight)
}

fn code<T>(built: Result<T, CupelError>) -> Result<(), &'static str> {
    built.map(|_| ()).map_err(|error| error.code())
}

// proves: R013
#[test]
fn a_tag_is_weighted_once() {
    let of = |names: [&str; 2], comparison| {
        code(TagScorer::from_weights(
            names.map(|name| tag(name, 1.0)),
            comparison,
        ))
    };
    assert_eq!(of(["a", "a"], TagComparison::Ordinal), Err("ScorerConfig"));
    assert_eq!(of(["a", "A"], TagComparison::Ordinal), Ok(()));
    let folded = of(["a", "A"], TagComparison::IgnoreAsciiCase);
    assert_eq!(folded, Err("ScorerConfig"));
    assert_eq!(of(["ä", "Ä"], TagComparison::IgnoreAsciiCase), Ok(()));
}

// proves: R051
#[test]
fn tag_weights_are_summed_in_their_order() {
    // 1e16 absorbs a 1, but not a 2: (1e16 + 1) + 1 is 1e16, and (1 + 1) + 1e16 is 1e16 + 2.
    let item = ContextItem::builder("x", 1).tag("large").build().unwrap();
    let score = |weights: [(String, f64); 3]| {
        let scorer = TagScorer::from_weights(weights, TagComparison::Ordinal).unwrap();
        scorer.score(&item, &[])
    };
    let large = || tag("large", 1e16);
    assert_eq!(score([large(), tag("b", 1.0), tag("c", 1.0)]), 1.0);
    let last = score([tag("b", 1.0), tag("c", 1.0), large()]);
    assert_eq!(last, 1e16 / (1e16 + 2.0));
    assert!(last < 1.0);
}

// proves: R058
#[test]
fn a_kind_is_weighted_once() {
    let of = |names: [&str; 2]| {
        code(KindScorer::from_weights(
            names.map(|name| (ContextKind::new(name).unwrap(), 1.0)),
        ))
    };
    assert_eq!(of(["Note", "Note"]), Err("ScorerConfig"));
    assert_eq!(of(["Note", "NOTE"]), Err("ScorerConfig"));
    assert_eq!(of(["Note", "Notes"]), Ok(()));
}

#[test]
fn strategies_beyond_the_specification_check_their_numbers() {
    let entries = || vec![(Box::new(RecencyScorer) as Box<dyn Scorer>, 1.0)];
    let with_k = |k| {
        code(
            FusionScorer::new(FusionMethod::Sum, entries())
                .unwrap()
                .with_k(k),
        )
    };
    let density = |exponent| code(DensitySlice::new(exponent));
    for bad in [-1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(with_k(bad), Err("ScorerConfig"), "{bad}");
        assert_eq!(density(bad), Err("SlicerConfig"), "{bad}");
    }
    for good in [0.0, 0.5, 60.0] {
        assert_eq!((with_k(good), density(good)), (Ok(()), Ok(())), "{good}");
    }
    let none = FusionScorer::new(FusionMethod::Sum, Vec::<(Box<dyn Scorer>, f64)>::new());
    assert_eq!(code(none), Err("ScorerConfig"));
    assert_eq!(code(ProductScorer::new(Vec::new())), Err("ScorerConfig"));
}

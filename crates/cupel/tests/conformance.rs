//! Runs every vector over every surface and over the oracle.

use cupel_conformance::model::{Channel, Observation, Task};
use cupel_conformance::{Adapter, Claim, Options, Unsupported, run, suite};

use crate::adapter::Surface;
use crate::oracle;

/// The oracle as an implementation: a vector with a wrong expectation fails on it.
struct Oracle;

impl Adapter for Oracle {
    fn name(&self) -> &'static str {
        "oracle"
    }

    fn channels(&self, _task: &Task) -> &[Channel] {
        &Channel::ALL
    }

    fn observe(&self, task: &Task) -> Result<Observation, Unsupported> {
        Ok(oracle::observe(task))
    }
}

/// The channels of every surface. A surface that loses one fails, also if it no longer declares it.
#[rustfmt::skip]
const CHANNELS: &[(&str, [u8; 8])] = &[
    // scores, selection, shortfalls, order, window, report, events, overflow
    ("plain",            [1, 1, 0, 1, 1, 0, 0, 0]),
    ("batch",            [1, 1, 1, 1, 1, 1, 1, 1]),
    ("traced (stage)",   [0, 0, 0, 0, 1, 1, 0, 1]),
    ("traced (item)",    [0, 0, 0, 0, 1, 1, 1, 1]),
    ("completion hook",  [0, 0, 0, 0, 1, 1, 1, 1]),
    ("decisions",        [0, 0, 0, 0, 1, 1, 0, 0]),
    ("provided methods", [1, 1, 0, 1, 1, 0, 0, 0]),
    ("json",             [0, 0, 0, 0, 1, 1, 1, 0]),
    ("document",         [1, 1, 1, 1, 1, 1, 1, 1]),
];

// proves: CONF-1, CONF-2, GEN-1, GEN-3, GEN-6
#[test]
fn every_vector_passes_on_the_oracle_and_on_every_channel_of_every_surface() {
    let vectors = suite().unwrap_or_else(|errors| panic!("{errors}"));
    let surfaces = Surface::ALL.iter().map(|surface| surface as &dyn Adapter);
    let adapters: Vec<&dyn Adapter> = [&Oracle as &dyn Adapter]
        .into_iter()
        .chain(surfaces)
        .collect();
    let summary = run(&vectors, &adapters, &Options::default());
    assert!(summary.is_success(), "\n{summary}");
    for surface in ["plain", "batch", "provided methods"] {
        assert_eq!(summary.claim(surface), Some(Claim::FullyConformant));
    }

    let names: Vec<_> = Surface::ALL.iter().map(Surface::name).collect();
    let expected: Vec<_> = CHANNELS.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, expected);
    for channel in Channel::ALL {
        let cases = vectors
            .iter()
            .filter(|case| case.channels().contains(&channel));
        assert_eq!(
            summary.compared("oracle", channel),
            cases.count(),
            "{channel}\n{summary}"
        );
    }
    for (name, has) in CHANNELS {
        for (channel, has) in Channel::ALL.into_iter().zip(has) {
            let cases = vectors
                .iter()
                .filter(|case| case.channels().contains(&channel) && *has == 1);
            assert_eq!(
                summary.compared(name, channel),
                cases.count(),
                "{name}, {channel}\n{summary}"
            );
        }
    }
}

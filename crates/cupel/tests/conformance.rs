//! Every vector over every surface, and over the oracle.

use cupel_conformance::model::{Observation, Task};
use cupel_conformance::{Adapter, Options, Unsupported, run, suite};

use crate::adapter::Surface;
use crate::oracle;

/// The oracle is an implementation too: it keeps the vectors honest.
struct Oracle;

impl Adapter for Oracle {
    fn name(&self) -> &'static str {
        "oracle"
    }

    fn observe(&self, task: &Task) -> Result<Observation, Unsupported> {
        Ok(oracle::observe(task))
    }
}

fn check(adapters: &[&dyn Adapter]) {
    let vectors = suite().unwrap_or_else(|errors| panic!("{errors}"));
    let summary = run(&vectors, adapters, &Options::default());
    assert!(summary.is_success(), "\n{summary}");
}

// proves: CONF-1, CONF-2, GEN-1, GEN-3, GEN-6
#[test]
fn every_vector_passes_on_every_surface() {
    let surfaces: Vec<&dyn Adapter> = Surface::ALL.iter().map(|s| s as &dyn Adapter).collect();
    check(&surfaces);
}

#[test]
fn every_vector_passes_on_the_oracle() {
    check(&[&Oracle]);
}

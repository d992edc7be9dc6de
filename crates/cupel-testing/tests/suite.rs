//! All tests of the crate beside those in its documentation, as one binary.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Both forms of an assertion pass.
macro_rules! passes {
    ($report:expr, $method:ident($($argument:expr),*)) => {{
        let report = &$report;
        report.should().$method($($argument),*);
        assert!(report.check().$method($($argument),*).is_ok());
    }};
}

/// Both forms of an assertion fail with the text.
macro_rules! fails {
    ($report:expr, $method:ident($($argument:expr),*), $text:expr) => {{
        let report = &$report;
        let raised: cupel_testing::SelectionReportAssertionError = crate::payload(|| {
            report.should().$method($($argument),*);
        });
        let returned = report.check().$method($($argument),*).unwrap_err();
        assert_eq!(raised.message(), $text);
        assert_eq!(raised, returned);
    }};
}

mod failure;
mod fixture;
mod laws;
mod patterns;
mod surface;

/// What `panicking` panics with, which has to be of that type.
fn payload<T: Any>(panicking: impl FnOnce()) -> T {
    let caught = catch_unwind(AssertUnwindSafe(panicking)).expect_err("it does not panic");
    *caught.downcast().expect("the payload is of another type")
}

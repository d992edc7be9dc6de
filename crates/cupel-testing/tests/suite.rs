//! All integration tests of the crate, as one binary.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Asserts that both forms of an assertion pass.
macro_rules! passes {
    ($report:expr, $method:ident($($argument:expr),*)) => {{
        let report = &$report;
        report.should().$method($($argument),*);
        assert!(report.check().$method($($argument),*).is_ok());
    }};
}

/// Asserts that both forms of an assertion fail with the text.
macro_rules! fails {
    ($report:expr, $method:ident($($argument:expr),*), $text:expr) => {{
        let report = &$report;
        let panicked = crate::panic_message(|| {
            report.should().$method($($argument),*);
        });
        assert_eq!(panicked, $text);
        let returned = report.check().$method($($argument),*).unwrap_err();
        assert_eq!(returned.message(), $text);
    }};
}

mod failure;
mod fixture;
mod laws;
mod patterns;
mod surface;

/// Returns the string that the closure panics with.
fn panic_message(panicking: impl FnOnce()) -> String {
    let payload = catch_unwind(AssertUnwindSafe(panicking)).expect_err("it does not panic");
    *payload.downcast().expect("the payload is not a `String`")
}

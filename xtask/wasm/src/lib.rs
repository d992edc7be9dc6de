//! A WebAssembly module without imports that fits a chat, for a test on `wasm32-unknown-unknown`.
//!
//! The caller writes the chat into the memory that [`allocate`] returns, calls [`fit`], and reads the
//! answer from [`answer`], [`answer_len`] bytes of JSON.

use std::cell::RefCell;

use cupel_app::{Error, Options, Plain, Prepared, Scope, Source};

thread_local! {
    static INPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static ANSWER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Returns memory for an input of `len` bytes.
#[unsafe(no_mangle)]
pub extern "C" fn allocate(len: usize) -> *mut u8 {
    INPUT.with_borrow_mut(|input| {
        input.clear();
        input.resize(len, 0);
        input.as_mut_ptr()
    })
}

/// Fits the input into a budget. Returns 0, or 1 with an error as the answer.
#[unsafe(no_mangle)]
pub extern "C" fn fit(budget: i64) -> i32 {
    let input = INPUT.take();
    let (status, answer) = match fitted(input, budget) {
        Ok(answer) => (0, answer),
        Err(error) => (1, error.message(&Plain)),
    };
    ANSWER.set(answer.into_bytes());
    status
}

fn fitted(input: Vec<u8>, budget: i64) -> Result<String, Error> {
    let source = Source::from_bytes("chat.json", input)?;
    let mut options = Options::default();
    options.budget.budget = Some(budget.into());
    let prepared = Prepared::new(source, &options, Scope::OneBudget)?;
    let fit = prepared.fit()?;
    // A trace comes without a clock, too.
    assert!(!fit.run.report.events.is_empty());
    let answer = fit.answer().with_chat(&fit.text()?)?;
    serde_json::to_string(&answer).map_err(Error::internal)
}

/// Returns where the answer is.
#[unsafe(no_mangle)]
pub extern "C" fn answer() -> *const u8 {
    ANSWER.with_borrow(|answer| answer.as_ptr())
}

/// Returns the bytes of the answer.
#[unsafe(no_mangle)]
pub extern "C" fn answer_len() -> usize {
    ANSWER.with_borrow(Vec::len)
}

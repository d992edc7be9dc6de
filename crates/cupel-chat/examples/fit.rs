//! Fits the chat on standard input into 8,000 tokens.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "an example prints"
)]

use cupel::ContextBudget;
use cupel_chat::{Chat, Encoding, default_policy};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let request = std::io::read_to_string(std::io::stdin())?;
    let chat = Chat::parse(&request, None)?;
    let budget = ContextBudget::try_from(8_000)?;
    let fitted = chat.fit(&default_policy(), &budget, &Encoding::O200k)?;
    for message in &fitted.dropped {
        eprintln!("dropped {}: {}", message.index, message.reason);
    }
    println!("{}", fitted.to_json()); // the same request, valid for its provider
    Ok(())
}

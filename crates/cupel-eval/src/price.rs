//! What requests cost with a provider's prompt cache.
//!
//! A provider reads the prefix that a request shares with an earlier one from its cache, for a fraction of the price,
//! and writes the rest, some for more than the price:
//!
//! ```text
//! Anthropic's prices, 0.1 and 1.25; system and tools have 1,000 tokens, which are always cached
//! request 1   400 tokens, all new                  0.1 * 1,000         + 1.25 * 400 = 600
//! request 2   600 tokens, 400 shared with 1        0.1 * (1,000 + 400) + 1.25 * 200 = 390
//! request 2   six minutes later, lifetime 300 s    0.1 * 1,000         + 1.25 * 600 = 850
//! ```

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;

/// The prices of tokens that the cache reads and writes, where a plain input token costs 1. The default is
/// [`Prices::ANTHROPIC`].
///
/// ```
/// use cupel_eval::Prices;
///
/// assert_eq!("anthropic".parse(), Ok(Prices::ANTHROPIC));
/// assert_eq!("0.5, 1".parse(), Ok(Prices { read: 0.5, write: 1.0 }));
/// assert!("0.5".parse::<Prices>().is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Prices {
    /// The price of a token that is read from the cache.
    pub read: f64,
    /// The price of a token that is not.
    pub write: f64,
}

/// The largest price. It keeps every sum of prices finite.
const MAX_PRICE: f64 = 100.0;

impl Prices {
    /// Anthropic, all models, with the cache lifetime of five minutes (with one of an hour a write costs 2). See
    /// "Prompt caching" in Anthropic's documentation.
    pub const ANTHROPIC: Self = Self {
        read: 0.1,
        write: 1.25,
    };

    /// `OpenAI`'s GPT-5 models before GPT-5.6, which charges 1.25 for a write. GPT-4.1 reads for 0.25, GPT-4o for 0.5.
    /// See "Prompt caching" and "Pricing" in `OpenAI`'s documentation.
    pub const OPENAI: Self = Self {
        read: 0.1,
        write: 1.0,
    };

    /// The prices by the names of their providers.
    pub const NAMED: [(&str, Self); 2] = [("anthropic", Self::ANTHROPIC), ("openai", Self::OPENAI)];

    /// Returns the price of a request of which `cached` tokens are in the cache.
    pub fn price(self, tokens: i64, cached: i64) -> f64 {
        self.write * (tokens - cached) as f64 + self.read * cached as f64
    }
}

impl Default for Prices {
    fn default() -> Self {
        Self::ANTHROPIC
    }
}

impl FromStr for Prices {
    type Err = InvalidPrices;

    fn from_str(text: &str) -> Result<Self, InvalidPrices> {
        if let Some((_, prices)) = Self::NAMED.iter().find(|(name, _)| *name == text) {
            return Ok(*prices);
        }
        let price = |text: &str| {
            let price = text.trim().parse().ok();
            price.filter(|price| (0.0..=MAX_PRICE).contains(price))
        };
        let (read, write) = text.split_once(',').ok_or(InvalidPrices)?;
        Ok(Self {
            read: price(read).ok_or(InvalidPrices)?,
            write: price(write).ok_or(InvalidPrices)?,
        })
    }
}

/// A text is neither the name of a provider nor two prices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidPrices;

impl fmt::Display for InvalidPrices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected ")?;
        for (name, _) in Prices::NAMED {
            write!(f, "{name}, ")?;
        }
        write!(
            f,
            "or two numbers from 0 to {MAX_PRICE} for a read and a written token, such as 0.1,1.25"
        )
    }
}

impl std::error::Error for InvalidPrices {}

/// How the full bill of a request is computed.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Billing {
    /// The prices.
    pub prices: Prices,
    /// The tokens before the body, system and tools, which are always cached. `None` are the system messages and the
    /// request overhead that the runs have.
    pub prefix: Option<i64>,
    /// The seconds after which a request finds nothing of the one before in the cache. Each request starts them anew.
    pub lifetime: Option<u32>,
}

impl Billing {
    /// Returns whether the body of a request is no longer cached when the next one is sent. A request without a time
    /// is taken as sent in time.
    pub(crate) fn is_expired(
        self,
        sent: Option<DateTime<Utc>>,
        next: Option<DateTime<Utc>>,
    ) -> bool {
        let (Some(lifetime), Some(sent), Some(next)) = (self.lifetime, sent, next) else {
            return false;
        };
        next - sent > TimeDelta::seconds(i64::from(lifetime))
    }

    /// Returns the price of a request whose body has `tokens`, of which `cached` are in the cache. `fixed` are the
    /// tokens of the system messages and the request overhead.
    pub(crate) fn price(self, fixed: i64, tokens: i64, cached: i64) -> f64 {
        let prefix = self.prefix.unwrap_or(fixed);
        let prices = self.prices;
        prices.price(prefix, prefix) + prices.price(tokens, cached)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(seconds: i64) -> Option<DateTime<Utc>> {
        DateTime::from_timestamp(seconds, 0)
    }

    /// The example at the head of the file.
    #[test]
    fn a_read_token_costs_a_fraction_and_a_written_one_more() {
        let billing = Billing::default();
        assert_eq!(billing.price(1_000, 400, 0), 600.0);
        assert_eq!(billing.price(1_000, 600, 400), 390.0);
        assert_eq!(billing.price(1_000, 600, 0), 850.0);
        let prefix = Some(2_000);
        let billing = Billing { prefix, ..billing };
        assert_eq!(billing.price(1_000, 600, 400), 490.0);
        // 60 read tokens and 40 plain ones.
        assert_eq!(Prices::OPENAI.price(100, 60), 46.0);
    }

    #[test]
    fn a_cache_expires_after_its_lifetime() {
        let lifetime = Some(300);
        let billing = Billing {
            lifetime,
            ..Billing::default()
        };
        assert!(!billing.is_expired(time(1_000), time(1_300)));
        assert!(billing.is_expired(time(1_000), time(1_301)));
        // Clocks of several machines may disagree.
        assert!(!billing.is_expired(time(1_000), time(900)));
        assert!(!billing.is_expired(None, time(9_000)));
        assert!(!billing.is_expired(time(1_000), None));
        assert!(!Billing::default().is_expired(time(1_000), time(9_000)));
    }

    #[test]
    fn prices_are_a_name_or_two_numbers_from_0_to_100() {
        for (text, read, write) in [
            ("openai", 0.1, 1.0),
            ("0,2", 0.0, 2.0),
            ("100, .5", 100.0, 0.5),
        ] {
            assert_eq!(text.parse(), Ok(Prices { read, write }), "{text}");
        }
        let invalid = [
            "", "gemini", "0.1", "0.1,", "0.1,1,2", "-0.1,1", "0.1,101", "nan,1", "0.1,inf",
        ];
        for text in invalid {
            assert_eq!(text.parse::<Prices>(), Err(InvalidPrices), "{text}");
        }
        assert_eq!(
            InvalidPrices.to_string(),
            "expected anthropic, openai, or two numbers from 0 to 100 for a read and a written token, such as 0.1,1.25"
        );
    }
}

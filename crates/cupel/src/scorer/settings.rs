//! The settings of the scorers that know the question.
//!
//! They are data that a document can name, so they exist without the feature `relevance`, which has
//! the scorers: reading a policy does not need a stemmer.

#[cfg(feature = "relevance")]
use crate::CupelError;

/// How matches reach the items next to them.
///
/// An item gets the largest match around it, which fades by `forward` with each item after the match and by
/// `backward` with each item before it. 0 turns a direction off.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NearKernel {
    /// The share of a match that the next item gets.
    pub forward: f64,
    /// The share of a match that the previous item gets.
    pub backward: f64,
}

/// How the relevance of a whole passage reaches its items.
///
/// Scores are raised to `power`, so that strong ones count; their sum over both directions, which fades by `decay`
/// with each item, is scaled to `weight` and added.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WideKernel {
    /// The most that a passage adds. The best match alone has 1. 0 turns it off.
    pub weight: f64,
    /// The share that remains with each item of distance.
    pub decay: f64,
    /// The power of the scores.
    pub power: u32,
}

impl NearKernel {
    #[cfg(feature = "relevance")]
    pub(super) const OFF: Self = Self {
        forward: 0.0,
        backward: 0.0,
    };

    #[cfg(feature = "relevance")]
    pub(super) fn check(self) -> Result<(), CupelError> {
        share("near.forward", self.forward)?;
        share("near.backward", self.backward)
    }
}

impl Default for NearKernel {
    /// 0.6 forward, 0.4 backward: answers follow questions.
    fn default() -> Self {
        Self {
            forward: 0.6,
            backward: 0.4,
        }
    }
}

impl WideKernel {
    #[cfg(feature = "relevance")]
    pub(super) const OFF: Self = Self {
        weight: 0.0,
        decay: 0.0,
        power: 1,
    };

    #[cfg(feature = "relevance")]
    pub(super) fn check(self) -> Result<(), CupelError> {
        not_negative("wide.weight", self.weight)?;
        share("wide.decay", self.decay)?;
        if !(1..=16).contains(&self.power) {
            return Err(CupelError::ScorerConfig(
                "wide.power must be from 1 to 16".to_owned(),
            ));
        }
        Ok(())
    }
}

impl Default for WideKernel {
    /// Weight 0.5, decay 0.97, power 3.
    fn default() -> Self {
        Self {
            weight: 0.5,
            decay: 0.97,
            power: 3,
        }
    }
}

/// Returns an error if a number is not from 0 to 1.
#[cfg(feature = "relevance")]
fn share(name: &str, number: f64) -> Result<(), CupelError> {
    if (0.0..=1.0).contains(&number) {
        return Ok(());
    }
    Err(CupelError::ScorerConfig(format!(
        "{name} must be from 0 to 1"
    )))
}

/// Returns an error if a number is negative or not finite.
#[cfg(feature = "relevance")]
pub(super) fn not_negative(name: &str, number: f64) -> Result<(), CupelError> {
    super::check_weight(number, || name.to_owned())
}

/// How a `ConversationScorer` reads a question. All but `speaker_boost` need word lists
/// and apply to English only.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QuestionRules {
    /// The weight of words that say what to do with the answer (`summarize`, `mention`), relative to other words.
    pub word_weight: f64,
    /// The factor for items with a time if the question asks for one (`when`), and for items with a number
    /// if it asks for one (`how many`).
    pub answer_boost: f64,
    /// The factor for items whose speaker is named in the question.
    pub speaker_boost: f64,
    /// The weight of [`WideKernel`] if the question is about a whole topic (`discuss`, `summarize`, `opinion`).
    pub broad_weight: f64,
}

#[cfg(feature = "relevance")]
impl QuestionRules {
    pub(super) fn check(self) -> Result<(), CupelError> {
        not_negative("question.word_weight", self.word_weight)?;
        positive("question.answer_boost", self.answer_boost)?;
        positive("question.speaker_boost", self.speaker_boost)?;
        not_negative("question.broad_weight", self.broad_weight)
    }
}

impl Default for QuestionRules {
    /// 0.2, 1.3, 1.5 and 2.
    fn default() -> Self {
        Self {
            word_weight: 0.2,
            answer_boost: 1.3,
            speaker_boost: 1.5,
            broad_weight: 2.0,
        }
    }
}

#[cfg(feature = "relevance")]
fn positive(name: &str, number: f64) -> Result<(), CupelError> {
    if number > 0.0 && number.is_finite() {
        return Ok(());
    }
    Err(CupelError::ScorerConfig(format!(
        "{name} must be positive and finite"
    )))
}

/// Defines the languages with their names and their Snowball stemmers.
macro_rules! languages {
    ($($(#[$doc:meta])* $Language:ident $name:literal $algorithm:expr;)+) => {
        /// The language of the texts: how words are stemmed, and which lists of words apply.
        ///
        /// Stemmers are those of Snowball (Porter 2001). Lists of stop words and question words exist for
        /// English only.
        #[non_exhaustive]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
        pub enum Language {
            $($(#[$doc])* $Language,)+
        }

        impl Language {
            /// The names of all languages, in the order of the enum.
            pub const NAMES: &'static [&'static str] = &[$($name),+];

            /// Returns the name.
            ///
            /// ```
            /// assert_eq!(cupel::Language::English.name(), "english");
            /// ```
            pub fn name(self) -> &'static str {
                match self { $(Self::$Language => $name),+ }
            }

            /// Returns the language of a name.
            ///
            /// ```
            /// use cupel::Language;
            ///
            /// assert_eq!(Language::from_name("german"), Some(Language::German));
            /// assert_eq!(Language::from_name("klingon"), None);
            /// ```
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$Language),)+ _ => None }
            }

            #[cfg(feature = "relevance")]
            pub(super) fn algorithm(self) -> Option<rust_stemmers::Algorithm> {
                use rust_stemmers::Algorithm;
                match self { $(Self::$Language => $algorithm),+ }
            }
        }
    };
}

languages! {
    /// English, with word lists.
    #[default]
    English "english" Some(Algorithm::English);
    /// Arabic.
    Arabic "arabic" Some(Algorithm::Arabic);
    /// Danish.
    Danish "danish" Some(Algorithm::Danish);
    /// Dutch.
    Dutch "dutch" Some(Algorithm::Dutch);
    /// Finnish.
    Finnish "finnish" Some(Algorithm::Finnish);
    /// French.
    French "french" Some(Algorithm::French);
    /// German.
    German "german" Some(Algorithm::German);
    /// Greek.
    Greek "greek" Some(Algorithm::Greek);
    /// Hungarian.
    Hungarian "hungarian" Some(Algorithm::Hungarian);
    /// Italian.
    Italian "italian" Some(Algorithm::Italian);
    /// Norwegian.
    Norwegian "norwegian" Some(Algorithm::Norwegian);
    /// Portuguese.
    Portuguese "portuguese" Some(Algorithm::Portuguese);
    /// Romanian.
    Romanian "romanian" Some(Algorithm::Romanian);
    /// Russian.
    Russian "russian" Some(Algorithm::Russian);
    /// Spanish.
    Spanish "spanish" Some(Algorithm::Spanish);
    /// Swedish.
    Swedish "swedish" Some(Algorithm::Swedish);
    /// Tamil.
    Tamil "tamil" Some(Algorithm::Tamil);
    /// Turkish.
    Turkish "turkish" Some(Algorithm::Turkish);
    /// Any other language: words are not stemmed.
    Other "other" None;
}

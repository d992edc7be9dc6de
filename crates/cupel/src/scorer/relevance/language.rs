//! [`Language`]: the stemmer and the word lists of a language.

use rust_stemmers::Algorithm;

use super::lists::Lists;

/// Defines the languages with their names and their Snowball stemmers.
macro_rules! languages {
    ($($(#[$doc:meta])* $Language:ident $name:literal $algorithm:expr;)+) => {
        /// The language of the texts: how words are stemmed, and which lists of words apply.
        ///
        /// Stemmers are those of Snowball (Porter 2001). Lists of stop words and question words exist for
        /// English only; other languages do without.
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

            pub(super) fn algorithm(self) -> Option<Algorithm> {
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

impl Language {
    pub(super) fn lists(self) -> Option<&'static Lists> {
        (self == Self::English).then(Lists::english)
    }
}

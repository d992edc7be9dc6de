//! Parses files into [`Vector`]s.

mod expected;
mod item;
mod labels;
mod reader;
mod scope;
mod strategy;

use toml::Table;

use self::{
    reader::{Fields, Source},
    scope::Scope,
};
use crate::{
    error::{Problem, VectorError},
    model::Task,
    vector::{Level, Vector},
};

/// Reads the task of a stage from the document, its `[test]` and its `[config]`.
type Read = fn(&Fields<'_>, &Fields<'_>, &Scope<'_>) -> Result<Task, VectorError>;

const STAGES: &[(&str, Read)] = &[
    ("scoring", |root, about, config| {
        let name = about.get_required("scorer", "the name of a scorer")?;
        Ok(Task::Score {
            scorer: strategy::scorer(&name, config)?,
            items: item::items(root)?,
        })
    }),
    ("slicing", |root, about, config| {
        let name = about.get_required("slicer", "the name of a slicer")?;
        Ok(Task::Slice {
            slicer: strategy::slicer(&name, config)?,
            budget: item::budget(root)?,
            items: item::scored_items(root, "scored_items")?,
        })
    }),
    ("placing", |root, about, config| {
        let name = about.get_required("placer", "the name of a placer")?;
        Ok(Task::Place {
            placer: strategy::placer(&name, config)?,
            items: item::scored_items(root, "items")?,
        })
    }),
    ("pipeline", |root, _, config| {
        Ok(Task::Run {
            policy: strategy::policy(config)?,
            budget: item::budget(root)?,
            items: item::items(root)?,
        })
    }),
];

/// The default of `score_epsilon`.
const DEFAULT_EPSILON: f64 = 1e-9;

impl Vector {
    /// Parses a case. `path` determines its level and is part of errors.
    ///
    /// Values are not validated: a negative budget or an empty content is passed on.
    ///
    /// # Errors
    ///
    /// Returns the first error: invalid TOML, a missing field, a wrong
    /// type, an unknown name, a time without an offset, an expectation for an
    /// unknown item, or no expectation at all.
    ///
    /// ```
    /// use cupel_conformance::Vector;
    ///
    /// let text = r#"
    ///     [test]
    ///     name = "The hint is the score"
    ///     stage = "scoring"
    ///     scorer = "reflexive"
    ///
    ///     [[items]]
    ///     content = "hinted"
    ///     tokens = 10
    ///     futureRelevanceHint = 0.7
    ///
    ///     [[expected]]
    ///     content = "hinted"
    ///     score_approx = 0.7
    /// "#;
    /// let vector = Vector::parse("required/scoring/hint.toml", text)?;
    /// assert_eq!(vector.name, "The hint is the score");
    ///
    /// let error = Vector::parse("hint.toml", &text.replace("= 10", "= 10.5")).unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "hint.toml: items[0].tokens: expected an integer, found a float"
    /// );
    /// # Ok::<(), cupel_conformance::VectorError>(())
    /// ```
    pub fn parse(path: &str, text: &str) -> Result<Self, VectorError> {
        let source = Source::new(path);
        let document: Table = text
            .parse()
            .map_err(|error| source.error("", Problem::Toml(error)))?;
        let root = Fields::root(&source, &document);
        let about: Fields<'_> = root.required("test")?;
        let no_config = Table::new();
        let config = root
            .optional("config")?
            .unwrap_or_else(|| Fields::absent(&source, "config", &no_config));

        let name = about.required("name")?;
        let stage = about.get_required("stage", "the name of a stage")?;
        let task = stage.name("stage", STAGES)?(&root, &about, &Scope::config(config))?;
        let epsilon = match root.optional::<Fields<'_>>("tolerance")? {
            Some(tolerance) => tolerance.optional("score_epsilon")?,
            None => None,
        };
        let expected = expected::expected(&root, &task)?;
        Ok(Self {
            path: path.to_owned(),
            level: Level::of(path),
            name,
            requirements: about.list("requirements")?,
            rulings: about.list("rulings")?,
            flags: about.list("flags")?,
            why: about.optional("why")?.unwrap_or_default(),
            task,
            expected,
            epsilon: epsilon.unwrap_or(DEFAULT_EPSILON),
            ignored: source.ignored(&document),
        })
    }
}

//! The questions by name, for doors whose callers name what they ask: a function of a package, a path of a server.
//!
//! [`ask`] has one arm per question. A door with code per question calls the methods of [`Prepared`] instead. A
//! question of a few lines is here as a whole, with its answer.

use serde::Serialize;
use serde_json::Value;

use crate::error::Error;
use crate::notice::Notice;
use crate::options::Options;
use crate::policy::NamedPolicy;
use crate::prepared::{Prepared, Scope};
use crate::search::{scorer_named, search};
use crate::source::Source;
use crate::sweep::Observer;

/// What only some of the questions take. A question ignores the arguments of others.
#[derive(Debug, Clone, Default)]
pub struct Arguments {
    /// One message or item, by position. Defaults to all of them.
    pub item: Option<usize>,
    /// The smallest target of a sweep. Defaults to 0.
    pub from: Option<i64>,
    /// The largest target of a sweep. Defaults to the tokens of all candidates.
    pub to: Option<i64>,
    /// The largest budget of a search for the least one. Defaults to the tokens of all candidates.
    pub ceiling: Option<i64>,
    /// How many passages a search returns. Defaults to 5.
    pub top: Option<usize>,
    /// The scorer of a search, instead of a policy.
    pub scorer: Option<String>,
    /// The policies that are compared.
    pub policies: Vec<NamedPolicy>,
}

/// The answer to a question as JSON, and what the caller should know about it.
#[derive(Debug)]
pub struct Answered {
    /// The answer.
    pub answer: Value,
    /// Settings without effect, and estimated counts.
    pub notices: Vec<Notice>,
}

impl Answered {
    fn new(answer: &impl Serialize, notices: Vec<Notice>) -> Result<Self, Error> {
        let answer = serde_json::to_value(answer).map_err(Error::internal)?;
        Ok(Self { answer, notices })
    }
}

/// Answers the question of that name.
///
/// # Errors
///
/// What is wrong with the input, the options or the arguments; [`Fault::Internal`](crate::Fault::Internal) for a
/// question that there is not.
pub fn ask(
    question: &str,
    source: Source,
    options: &Options,
    arguments: Arguments,
    observer: Observer<'_>,
) -> Result<Answered, Error> {
    let prepare = |source, scope| Prepared::new(source, options, scope);
    let notices = |prepared: &Prepared| prepared.setting.all_notices();
    match question {
        "explain" => {
            let prepared = prepare(source, Scope::Budget)?;
            match arguments.item {
                Some(item) => Answered::new(&prepared.explain_item(item)?, notices(&prepared)),
                None => Answered::new(&prepared.explain()?, notices(&prepared)),
            }
        }
        "sweep" => {
            let prepared = prepare(source, Scope::AnyBudget)?;
            let from = arguments.from.unwrap_or(0);
            let answer = prepared.sweep(from, arguments.to, observer)?;
            Answered::new(&answer, notices(&prepared))
        }
        "min_budget" => {
            let prepared = prepare(source, Scope::AnyBudget)?;
            let answer = prepared.min_budget(arguments.item, arguments.ceiling, observer)?;
            Answered::new(&answer, notices(&prepared))
        }
        "compare" => {
            let prepared = prepare(source, Scope::OtherPolicies)?;
            let answer = prepared.compare(arguments.policies)?;
            let mut notices = notices(&prepared);
            notices.extend(answer.notices.iter().cloned());
            Answered::new(&answer, notices)
        }
        "search" => {
            const TOP: usize = 5;
            let mut options = options.clone();
            if let Some(name) = arguments.scorer {
                options.policy = Some(scorer_named(&name)?);
            }
            let query = options.query.clone().unwrap_or_default();
            let answer = search(&source, &query, arguments.top.unwrap_or(TOP), &options)?;
            let notices = answer.notices.clone();
            Answered::new(&answer, notices)
        }
        unknown => Err(Error::internal(format!("no question is named {unknown}"))),
    }
}

//! Errors and notices as data, in the words of a door.

use cupel_app::{
    Argument, Dialect, ErrorClass, Fault, Options, Plain, Prepared, Question, Scope, Source,
};

/// A door that shouts.
struct Shouting;

impl Dialect for Shouting {
    fn argument(&self, argument: Argument) -> String {
        argument.name().to_uppercase()
    }

    fn with_value(&self, argument: Argument, value: &str) -> String {
        format!("{}={value}", self.argument(argument))
    }

    fn question(&self, question: Question) -> String {
        question.name().to_uppercase()
    }
}

fn error(text: &str, set: impl FnOnce(&mut Options)) -> cupel_app::Error {
    let mut options = Options::default();
    set(&mut options);
    let source = Source::new("chat.json", text);
    match Prepared::new(source, &options, Scope::Budget) {
        Ok(prepared) => prepared.fit().err().expect("an error"),
        Err(error) => error,
    }
}

const CHAT: &str = r#"[{"role": "user", "content": "Hello!"}]"#;
const ITEMS: &str = r#"[{"content": "a", "tokens": 3}]"#;

#[test]
fn an_error_names_its_argument_in_the_words_of_the_door() {
    let error = error(CHAT, |options| options.budget.budget = Some("8,000".into()));
    assert_eq!(error.argument(), Some(Argument::Budget));
    assert!(matches!(*error.fault, Fault::Amount(Argument::Budget, _)));
    assert_eq!(error.class(), ErrorClass::InvalidInput);
    let sentence = "invalid budget `8,000`: remove the comma";
    assert!(
        error
            .message(&Shouting)
            .starts_with(&format!("BUDGET: {sentence}"))
    );
    assert!(
        error
            .message(&Plain)
            .starts_with(&format!("`budget`: {sentence}"))
    );
}

#[test]
fn an_argument_for_chats_is_refused_for_items() {
    let error = error(ITEMS, |options| {
        options.budget.budget = Some(10.into());
        let settings = options.chat.give(&["max_result"]);
        settings.max_result = Some(5);
    });
    assert_eq!(error.argument(), Some(Argument::Chat("max_result")));
    assert_eq!(error.help(&Shouting).as_deref(), Some("remove MAX_RESULT"));
}

#[test]
fn mandatory_messages_over_the_budget_are_listed_with_their_tokens() {
    let error = error(CHAT, |options| options.budget.budget = Some(2.into()));
    assert_eq!(error.class(), ErrorClass::OverBudget);
    let details = error.details();
    assert_eq!(details[0].what, "message 0 (user)");
    assert!(details[0].tokens > 2);
}

#[test]
fn every_argument_has_a_name_of_its_own() {
    let names: std::collections::BTreeSet<_> = Argument::all().map(Argument::name).collect();
    assert_eq!(names.len(), Argument::all().count());
}

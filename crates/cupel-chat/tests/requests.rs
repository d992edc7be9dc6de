//! Recorded requests, if `CUPEL_REQUESTS` names a directory with one request per JSON file.

use cupel::ContextBudget;
use cupel_chat::{Chat, Encoding, FitError, default_policy, newest_policy, single_policy};

use crate::valid;

#[test]
fn recorded_requests_fit_byte_for_byte_and_at_half_their_tokens() {
    let Ok(directory) = std::env::var("CUPEL_REQUESTS") else {
        return;
    };
    let files = std::fs::read_dir(&directory).expect("CUPEL_REQUESTS names a directory");
    let paths = files.map(|file| file.unwrap().path());
    let mut paths: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|it| it == "json"))
        .collect();
    paths.sort();
    let (mut requests, mut windows, mut too_large) = (0, 0, 0);
    for path in paths {
        let name = path.display();
        let text = std::fs::read_to_string(&path).unwrap();
        let chat = Chat::parse(&text, None).unwrap_or_else(|error| panic!("{name}: {error}"));
        let all = chat.tokens(&Encoding::O200k);
        requests += 1;
        for policy in [default_policy(), single_policy(), newest_policy()] {
            let fit = |tokens| {
                let budget = ContextBudget::with_target(tokens, tokens).unwrap();
                chat.fit(&policy, &budget, &Encoding::O200k)
            };
            let whole = fit(all).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(whole.to_json(), text, "{name}");
            assert_eq!(whole.warnings, [], "{name}");
            for share in [50, 20, 35, 65, 80, 95] {
                let fitted = match fit(all * share / 100) {
                    Ok(fitted) => fitted,
                    Err(FitError::TooLarge { .. }) => {
                        too_large += 1;
                        continue;
                    }
                    Err(error) => panic!("{name}: {error}"),
                };
                windows += 1;
                let json = fitted.to_json();
                let objection = valid::objection_to_window(chat.shape(), &text, &json);
                assert_eq!(objection, None, "{name} at {share} %: {json}");
                let again = Chat::parse(&json, Some(chat.shape())).unwrap();
                assert_eq!(
                    again.tokens(&Encoding::O200k),
                    fitted.tokens_after,
                    "{name}"
                );
            }
        }
    }
    assert!(requests > 0);
    println!(
        "{requests} requests, {windows} windows, {too_large} budgets below the mandatory messages"
    );
}

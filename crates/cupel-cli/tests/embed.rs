//! The subcommands in a program give what the command gives.

use cupel::Policy;
use cupel_cli::{Call, Session, WindowMessage};
use serde_json::Value;

use crate::sandbox::{Sandbox, example};
use crate::streams::slow_request;

fn session() -> String {
    let path = example("agent-session.json");
    std::fs::read_to_string(path).expect("the example")
}

#[test]
fn an_answer_is_what_the_command_prints_with_json() {
    let (chat, sandbox) = (session(), Sandbox::new());
    for arguments in [
        &["count", "-"][..],
        &["explain", "-", "--budget", "2k"],
        &["explain", "-", "--budget", "2k", "--item", "30"],
        &["sweep", "-", "--from", "1000"],
        &["min-budget", "-", "--item", "3"],
        &[
            "compare", "-", "--budget", "2k", "--policy", "agent", "--policy", "newest",
        ],
        &["search", "-", "Which month was wrong?"],
        &["models", "gpt-4o"],
    ] {
        let call = Call::new(arguments.iter().copied()).input("standard input", &*chat);
        let printed = sandbox.run_with_input(&[arguments, &["--json"]].concat(), chat.as_bytes());
        assert_eq!(call.answer().unwrap(), printed.ok(), "{arguments:?}");
    }
}

#[test]
fn a_problem_is_what_the_command_prints_with_json() {
    let sandbox = Sandbox::new();
    for (arguments, input) in [
        (&["fit", "-", "--budget", "8,000"][..], "[]"),
        (
            &["fit", "-", "--budget", "5"],
            r#"[{"role": "user", "content": "What is 2 + 2?"}]"#,
        ),
        (
            &["select", "-", "--budget", "9"],
            r#"[{"content": "a", "tokens": "x"}]"#,
        ),
        (&["select", "-", "--policy", "rga"], "[]"),
        (&["select", "-", "--bugdet", "9"], "[]"),
    ] {
        let call = Call::new(arguments.iter().copied()).input("standard input", input);
        let problem = call.answer().unwrap_err().json();
        let printed = sandbox.run_with_input(&[arguments, &["--json"]].concat(), input.as_bytes());
        let printed: Value = serde_json::from_str(&printed.err).unwrap();
        assert_eq!(problem, printed, "{arguments:?}");
    }
}

#[test]
fn a_window_by_position_is_the_chat_that_the_command_writes() {
    let chat = session();
    let document: Value = serde_json::from_str(&chat).unwrap();
    let arguments = ["fit", "-", "--budget", "2k", "--marker", "[{n} gone]"];
    let answer = Call::new(arguments)
        .input("chat", &*chat)
        .fit(None)
        .unwrap();
    assert_eq!(answer.list.as_deref(), Some("/messages"));
    let written = Sandbox::new().run_with_input(&arguments, chat.as_bytes());
    let written: Value = serde_json::from_str(written.ok()).unwrap();
    let written = written["messages"].as_array().unwrap();
    assert_eq!(answer.messages.len(), written.len());
    let mut changed = 0;
    for (message, written) in answer.messages.iter().zip(written) {
        match message {
            WindowMessage::Original(index) => assert_eq!(document["messages"][index], *written),
            WindowMessage::Changed(index, texts) => {
                changed += 1;
                assert_ne!(document["messages"][index], *written);
                // All texts of this example are the content of a tool result.
                let [(path, text)] = &texts[..] else {
                    panic!("{texts:?}")
                };
                assert_eq!(
                    (path.as_str(), written["content"].as_str()),
                    ("content", Some(&**text))
                );
            }
            WindowMessage::New(json) => {
                changed += 1;
                assert_eq!(serde_json::from_str::<Value>(json).unwrap(), *written);
            }
        }
    }
    assert!(changed > 1, "{changed}");
}

#[test]
fn a_policy_of_the_program_takes_precedence_over_a_preset() {
    let newest = Policy::preset("newest").unwrap();
    let fit = |name: &str| {
        let arguments = ["fit", "-", "--budget", "2k", "--policy", name];
        Call::new(arguments).input("chat", session())
    };
    let given = fit("agent").policy("agent", newest).fit(None).unwrap();
    let named = fit("newest").fit(None).unwrap();
    let preset = fit("agent").fit(None).unwrap();
    assert_eq!(given.messages, named.messages);
    assert_ne!(given.messages, preset.messages);
}

#[test]
fn a_session_remembers_its_windows() {
    let fit = |session: &mut Session| {
        let call = Call::new(["fit", "-", "--budget", "2k"]).input("chat", self::session());
        call.fit(Some(session)).unwrap().document
    };
    let mut session = Session::default();
    assert_eq!(fit(&mut session)["reuse"], Value::Null);
    assert_eq!(fit(&mut session)["reuse"]["share"], 1.0);
    let mut resumed = Session::resume(&session.state()).unwrap();
    assert_eq!(fit(&mut resumed)["reuse"]["share"], 1.0);
    assert!(Session::resume("{}").is_err());
}

#[test]
fn a_program_stops_a_search_over_budgets() {
    let request = String::from_utf8(slow_request()).unwrap();
    for command in ["sweep", "min-budget"] {
        let call = Call::new([command, "-"]).input("items", &*request);
        let answer = call.stopped_by(|| true).answer().unwrap();
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert!(answer["stopped_at"].is_i64(), "{command}");
        assert_eq!(answer["exact"], false);
    }
}

#[test]
fn the_arguments_of_fit_are_checked_without_a_chat() {
    let check = |arguments: &[&str]| {
        let line = ["fit", "-"].iter().chain(arguments).copied();
        Call::new(line).check_fit()
    };
    check(&["--budget", "50%", "--reserve", "0", "--target", "8k"]).unwrap();
    check(&[]).unwrap();
    for (arguments, named) in [
        (&["--budget", "abc"][..], "--budget"),
        (&["--budget", "0"], "--budget"),
        (&["--target", "8,000"], "--target"),
        (&["--reserve", "x"], "--reserve"),
        (&["--shorten", "some"], "--shorten"),
        (&["--policy", "agnet"], "agnet"),
        (&["--policy", "newest", "--marker", "[cut]"], "--marker"),
    ] {
        let problem = check(arguments).unwrap_err().to_string();
        assert!(problem.contains(named), "{arguments:?}: {problem}");
    }
}

#[test]
fn a_setting_without_effect_is_a_warning() {
    let items = r#"[{"content": "a", "tokens": 1}]"#;
    for arguments in [
        &["explain", "-", "--budget", "9"][..],
        &["sweep", "-"],
        &["min-budget", "-"],
    ] {
        let warnings = |query: &[&'static str]| {
            let line = [arguments, &["--policy", "rag"], query].concat();
            let call = Call::new(line).input("items", items);
            call.answer_with_warnings().unwrap().1
        };
        let expected = "--query has no effect: no scorer of the policy rag reads it";
        assert_eq!(warnings(&["--query", "a"]), [expected], "{arguments:?}");
        assert!(warnings(&[]).is_empty(), "{arguments:?}");
    }
}

//! Completion scripts in the shells that they are for. A shell that is not installed is left out.

use std::process::Command;

use crate::sandbox::Sandbox;

/// The presets, as `cupel policy list` has them.
fn presets(sandbox: &Sandbox) -> Vec<String> {
    let presets = sandbox.run(&["policy", "list", "--json"]).json();
    let presets = presets.as_array().expect("a list").iter();
    let names = presets.map(|it| it["name"].as_str().expect("a name").to_owned());
    names.collect()
}

/// Runs a script of a shell in the directory of a test. `None` without the shell.
fn run(sandbox: &Sandbox, shell: &str, script: &str) -> Option<String> {
    let output = Command::new(shell)
        .args(["-c", script])
        .current_dir(sandbox.path(""))
        .env("HOME", sandbox.path(""))
        .output()
        .ok()?;
    Some(String::from_utf8(output.stdout).expect("UTF-8"))
}

/// Asserts that the words that complete `--policy` are the presets and the files; those of a prefix, the ones with it.
fn assert_completes(shell: &str, complete: impl Fn(&str) -> String) {
    let sandbox = Sandbox::with(&[("ragged.toml", b""), ("other.json", b"")]);
    let script = sandbox.run(&["completions", shell]);
    std::fs::write(sandbox.path("script"), script.ok()).expect("the script");
    let words = |typed: &str| {
        let shown = run(&sandbox, shell, &complete(typed))?;
        Some(
            shown
                .split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>(),
        )
    };
    let Some(all) = words("") else { return };
    for name in presets(&sandbox) {
        assert!(all.contains(&name), "{shell}: no {name} in {all:?}");
    }
    assert!(all.contains(&"other.json".to_owned()), "{shell}: {all:?}");
    let some = words("rag").expect("the shell");
    assert!(some.contains(&"rag".to_owned()), "{shell}: {some:?}");
    assert!(
        some.contains(&"ragged.toml".to_owned()),
        "{shell}: {some:?}"
    );
    assert!(!some.contains(&"agent".to_owned()), "{shell}: {some:?}");
}

#[test]
fn bash_completes_presets_and_files() {
    assert_completes("bash", |typed| {
        format!(
            "source ./script; COMP_WORDS=(cupel fit chat.json --policy '{typed}'); COMP_CWORD=4; \
             _cupel cupel '{typed}' --policy; echo \"${{COMPREPLY[@]}}\""
        )
    });
}

#[test]
fn fish_completes_presets_and_files() {
    assert_completes("fish", |typed| {
        format!("source ./script; complete -C 'cupel fit chat.json --policy {typed}' | cut -f1")
    });
}

/// The completion of zsh runs in its line editor only, so the words are those that a pseudo terminal shows.
#[test]
fn zsh_completes_presets_and_files() {
    assert_completes("zsh", |typed| {
        format!(
            "zmodload zsh/zpty; zpty -b z zsh -f -i; \
             zpty -w z 'PS1=; stty -echo; unsetopt beep; autoload -Uz compinit; compinit -u; source ./script; compdef _cupel cupel'; \
             zpty -w z 'bindkey \"^I\" list-choices; LISTMAX=999; echo READY'; \
             for i in {{1..100}}; do zpty -r z line; [[ $line == *READY* ]] && break; done; \
             zpty -w -n z 'cupel fit chat.json --policy {typed}'$'\\t'; \
             for i in {{1..40}}; do sleep 0.1; zpty -r -t z line && print -r -- $line; done | sed $'s/\\x1b[[][0-9;?]*[a-zA-Z]/ /g'; zpty -d z"
        )
    });
}

#[test]
fn every_script_names_the_presets_and_files_for_every_policy() {
    let sandbox = Sandbox::new();
    let names = presets(&sandbox).join(" ");
    let help = sandbox.run(&["fit", "--help"]);
    assert!(help.ok().contains("<NAME|FILE>"));
    for (shell, with_files, without) in [
        (
            "bash",
            format!("compgen -f -W \"{names}\""),
            format!("compgen -W \"{names}\""),
        ),
        (
            "zsh",
            format!("{{compadd {names}; _files}}"),
            format!("({names})"),
        ),
        (
            "fish",
            "-r -F -a \"".to_owned(),
            "-r -f -a \"agent\\t".to_owned(),
        ),
    ] {
        let script = sandbox.run(&["completions", shell]);
        let count = script.ok().matches(&with_files).count();
        // fit, select, explain, sweep, min-budget, marginal, compare, batch, search, eval and its subcommands.
        assert!(count >= 10, "{shell}: {count}");
        assert!(!script.ok().contains(&without), "{shell}");
    }
}

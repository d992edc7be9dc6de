//! `cupel --version`.

use crate::sandbox::Sandbox;

#[test]
fn the_version_says_what_it_is_built_from() {
    let sandbox = Sandbox::new();
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(sandbox.run(&["-V"]).ok(), format!("cupel {version}\n"));
    let long = sandbox.run(&["--version"]);
    let lines: Vec<&str> = long.ok().lines().collect();
    assert_eq!(lines[0], format!("cupel {version}"));
    let value = |label: &str| {
        let line = lines.iter().find_map(|line| line.strip_prefix(label));
        line.map(|value| value.trim().to_owned())
    };
    assert!(
        value("target").is_some_and(|target| target.contains('-')),
        "{}",
        long.out
    );
    assert!(long.out.contains("o200k_base, cl100k_base"), "{}", long.out);
    let one_line = long.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(one_line.contains("Built with Meta Llama 3"), "{}", long.out);
    assert_eq!(value("features").as_deref(), Some("vocabularies"));
    // A date makes two builds of one commit differ.
    assert_eq!(
        value("date").is_some(),
        option_env!("SOURCE_DATE_EPOCH").is_some()
    );
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let git = std::process::Command::new("git")
        .args(["rev-parse", "HEAD"])
        .current_dir(root)
        .output();
    let is_checkout = std::path::Path::new(root).join(".git").exists();
    if let (true, Ok(git)) = (is_checkout, git) {
        let commit = String::from_utf8(git.stdout).expect("UTF-8");
        assert_eq!(value("commit"), Some(commit.trim().to_owned()));
    }
}

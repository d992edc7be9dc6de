//! Embeds every file under `vectors/` in the crate.

use std::{
    env,
    error::Error,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

fn main() -> Result<(), Box<dyn Error>> {
    // Cargo watches a directory with everything below it.
    println!("cargo::rerun-if-changed=vectors");

    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("vectors");
    let mut files = Vec::new();
    collect(&root, "", &mut files)?;
    files.sort();

    let mut list = String::from("&[\n");
    for file in files {
        let below = format!("/vectors/{file}");
        writeln!(
            list,
            "    ({file:?}, include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), {below:?}))),"
        )?;
    }
    list.push_str("]\n");
    fs::write(PathBuf::from(env::var("OUT_DIR")?).join("vectors.rs"), list)?;
    Ok(())
}

/// Lists the vector files in `directory`, their paths beginning with `prefix`.
fn collect(directory: &Path, prefix: &str, files: &mut Vec<String>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry
            .file_name()
            .into_string()
            .map_err(|name| format!("a file name that is not UTF-8: {}", name.display()))?;
        let path = format!("{prefix}{name}");
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), &format!("{path}/"), files)?;
        } else if entry.path().extension().is_some_and(|end| end == "toml") && name != "suite.toml"
        {
            files.push(path);
        }
    }
    Ok(())
}

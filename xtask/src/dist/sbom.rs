//! Software bills of materials in `CycloneDX` 1.6: the crates in the command and in the Python packages.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::{FAILED, tools, version, write};
use crate::licenses::{ARTIFACTS, contained};
use crate::{process, read_toml, root};

pub(super) fn build(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    for (manifest, package, _) in ARTIFACTS {
        let bill = bill(&root().join(manifest), package)?;
        let text = serde_json::to_string_pretty(&bill).map_err(|error| error.to_string())?;
        let file = folder.join(format!("{package}-{}.cdx.json", version()?));
        write(&file, &text)?;
        files.push(file);
    }
    Ok(files)
}

/// Returns the bill of a package: each crate with its license and the hash that its package has in the registry.
fn bill(manifest: &Path, package: &str) -> Result<Value, String> {
    let lock = read_toml(&manifest.with_file_name("Cargo.lock"))?;
    let locked = lock["package"]
        .as_array()
        .ok_or("Cargo.lock has no packages")?;
    let hash = |name: &str, version: &str| {
        let text = |it: &toml::Value, key: &str| it.get(key)?.as_str().map(str::to_owned);
        let found = locked.iter().find(|it| {
            text(it, "name").as_deref() == Some(name)
                && text(it, "version").as_deref() == Some(version)
        });
        found.and_then(|it| text(it, "checksum"))
    };
    let reference = |name: &str, version: &str| format!("pkg:cargo/{name}@{version}");
    let version = version()?;
    let mut components = Vec::new();
    let mut references = Vec::new();
    for it in contained(manifest, package)? {
        let id = reference(&it.name, &it.version);
        let checksum = hash(&it.name, &it.version);
        let checksum = checksum.ok_or_else(|| format!("{}: no checksum in Cargo.lock", it.name))?;
        components.push(json!({
            "type": "library",
            "bom-ref": id,
            "name": it.name,
            "version": it.version,
            "purl": id,
            "licenses": [{ "expression": it.license.replace('/', " OR ") }],
            "hashes": [{ "alg": "SHA-256", "content": checksum }],
        }));
        references.push(id);
    }
    let id = reference(package, &version);
    Ok(json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": { "component": {
            "type": "application",
            "bom-ref": id,
            "name": package,
            "version": version,
            "licenses": [{ "license": { "id": "MIT" } }],
        }},
        "components": components,
        "dependencies": [{ "ref": id, "dependsOn": references }],
    }))
}

/// Validates a file with the JSON Schema of the specification.
const VALIDATE: &str = "\
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
for path in sys.argv[1:]:
    with open(path) as file:
        error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(file.read())
    assert error is None, f'{path}: {error}'
";

pub(super) fn check(files: &[PathBuf]) -> Result<&'static str, String> {
    let mut validate = Command::new(tools()?);
    process::run(validate.args(["-c", VALIDATE]).args(files), FAILED)?;
    Ok("valid for the schema of CycloneDX 1.6")
}

//! A container image as an OCI layout (OCI image specification 1.1): the static command for two processors.
//!
//! ```text
//! index.json -> blobs/sha256/(index) -> (manifest of amd64) -> (config), (layer)
//!                                    -> (manifest of arm64) -> (config), (layer)
//! ```
//!
//! The tag of the version names the index, from which a client takes the manifest of its processor. Readers without
//! indexes find each manifest by a tag of its own, such as `1.3.0-amd64`.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::binary::{self, Machine};
use super::{FAILED, copy, file_name, fresh, make_folder, only, tar, untar, version, write};
use crate::{process, read, root};

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// The processors of the image, with their names in image indexes.
const MACHINES: [(Machine, &str); 2] = [(Machine::X86_64, "amd64"), (Machine::Aarch64, "arm64")];

/// Where the command is in the image.
const PROGRAM: &str = "/usr/local/bin/cupel";

pub(super) fn build(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let version = version()?;
    let scratch = fresh("image")?;
    let layout = scratch.join("layout");
    make_folder(&layout.join("blobs/sha256"))?;
    let mut manifests = Vec::new();
    for (machine, processor) in MACHINES {
        let mut manifest = manifest(machine, processor, &scratch, &layout)?;
        manifest["platform"] = json!({ "architecture": processor, "os": "linux" });
        manifests.push(manifest);
    }
    let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": manifests });
    let mut index = blob(&layout, &index.to_string(), INDEX)?;
    let tagged = |descriptor: &mut Value, tag: &str| {
        descriptor["annotations"] = json!({ "org.opencontainers.image.ref.name": tag });
    };
    tagged(&mut index, &version);
    for (manifest, (_, processor)) in manifests.iter_mut().zip(MACHINES) {
        tagged(manifest, &format!("{version}-{processor}"));
    }
    manifests.insert(0, index);
    let entry = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": manifests });
    write(&layout.join("index.json"), &entry.to_string())?;
    write(
        &layout.join("oci-layout"),
        &json!({ "imageLayoutVersion": "1.0.0" }).to_string(),
    )?;
    let archive = folder.join(format!("cupel-{version}-oci.tar"));
    tar(&archive, &layout, ".")?;
    Ok(vec![archive])
}

/// Writes the manifest of a processor with its config and its layer, and returns its descriptor.
fn manifest(
    machine: Machine,
    processor: &str,
    scratch: &Path,
    layout: &Path,
) -> Result<Value, String> {
    let files = scratch.join(processor);
    make_folder(&files.join("usr/local/bin"))?;
    make_folder(&files.join("usr/share/doc/cupel"))?;
    make_folder(&files.join("work"))?;
    copy(&binary::program(machine)?, &files.join(&PROGRAM[1..]))?;
    copy(&root().join("LICENSE"), &files.join("usr/share/doc/cupel"))?;
    copy(
        &root().join("crates/cupel-cli/licenses"),
        &files.join("usr/share/doc/cupel"),
    )?;
    let plain = scratch.join(format!("{processor}.tar"));
    tar(&plain, &files, ".")?;
    let packed = scratch.join(format!("{processor}.tar.gz"));
    tar(&packed, &files, ".")?;
    let layer = blob_of(layout, &packed, LAYER)?;
    let config = json!({
        "architecture": processor,
        "os": "linux",
        // A user without rights. What is mounted at /work must be readable for others.
        "config": { "Entrypoint": [PROGRAM], "Cmd": ["--help"], "User": "65532:65532", "WorkingDir": "/work" },
        "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{}", sha256(&plain)?)] },
        "history": [{ "created_by": "cargo xtask dist" }],
    });
    let config = blob(layout, &config.to_string(), CONFIG)?;
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": config,
        "layers": [layer],
        "annotations": {
            "org.opencontainers.image.licenses": "MIT",
            "org.opencontainers.image.title": "cupel",
            "org.opencontainers.image.version": version()?,
        },
    });
    blob(layout, &manifest.to_string(), MANIFEST)
}

/// Adds a text to the blobs and returns its descriptor.
fn blob(layout: &Path, text: &str, kind: &str) -> Result<Value, String> {
    let path = layout.join("blob");
    write(&path, text)?;
    let descriptor = blob_of(layout, &path, kind)?;
    std::fs::remove_file(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(descriptor)
}

/// Adds a file to the blobs and returns its descriptor.
fn blob_of(layout: &Path, file: &Path, kind: &str) -> Result<Value, String> {
    let digest = sha256(file)?;
    copy(file, &layout.join("blobs/sha256").join(&digest))?;
    let size = std::fs::metadata(file).map_or(0, |it| it.len());
    Ok(json!({ "mediaType": kind, "digest": format!("sha256:{digest}"), "size": size }))
}

fn sha256(file: &Path) -> Result<String, String> {
    let sum = process::output(Command::new("sha256sum").arg("--binary").arg(file))?;
    let digest = sum.split(' ').next().unwrap_or_default();
    Ok(digest.trim_start_matches('\\').to_owned())
}

/// Unpacks both images with umoci, an independent reader, and runs their entry points.
pub(super) fn check(files: &[PathBuf]) -> Result<&'static str, String> {
    let folder = fresh("image-check")?;
    untar(only(files)?, &folder)?;
    for path in crate::entries(&folder.join("blobs/sha256"))? {
        if sha256(&path)? != file_name(&path) {
            return Err(format!("{}: another digest", path.display()));
        }
    }
    let is_there = || process::succeeds(Command::new("umoci").arg("--version"));
    process::install("umoci", is_there, "install umoci")?;
    for (machine, processor) in MACHINES {
        let bundle = fresh(&format!("bundle-{processor}"))?;
        std::fs::remove_dir(&bundle).map_err(|error| error.to_string())?;
        let mut unpack = Command::new("umoci");
        let image = format!("{}:{}-{processor}", folder.display(), version()?);
        unpack.args(["unpack", "--image", &image]).arg(&bundle);
        process::run(&mut unpack, FAILED)?;
        let config = read(&bundle.join("config.json"))?;
        let config: Value = serde_json::from_str(&config).map_err(|error| error.to_string())?;
        let program = config["process"]["args"][0].as_str().unwrap_or_default();
        binary::run_in(machine, &bundle.join("rootfs"), program)?;
    }
    Ok("unpacked by umoci and run in its root directory, for both processors")
}

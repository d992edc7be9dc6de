//! Wheels: the Python package and the package with the vocabularies.
//!
//! zig links for old versions of glibc and for other processors; it comes from `PyPI`, as maturin does.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::binary::Machine;
use super::{BUDGET, CHAT, FAILED, agrees, copy, fresh, make_folder, only, tools};
use crate::{entries, process, python, root, target};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Package {
    /// `cupel-context`.
    Context,
    /// `cupel-vocabularies`.
    Vocabularies,
}

/// The most bytes of a wheel: the promise of a small installation.
const MOST_BYTES: u64 = 8_000_000;

impl Package {
    fn folder(self) -> &'static str {
        match self {
            Self::Context => "bindings/python",
            Self::Vocabularies => "bindings/python-vocabularies",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Abi {
    /// One wheel for `CPython` 3.11 and later.
    Stable,
    /// `CPython` without the GIL, which has no stable ABI. `PyO3` supports 3.14 and later.
    FreeThreaded,
}

/// The glibc that the wheels need at least: that of `CentOS` 7.
const MANYLINUX: &str = "manylinux_2_17";

pub(super) fn build(
    package: Package,
    machine: Machine,
    abi: Abi,
    folder: &Path,
) -> Result<Vec<PathBuf>, String> {
    let triple = format!("{}-unknown-linux-gnu", machine.name());
    let mut rustup = Command::new("rustup");
    let hint = format!("install the target with `rustup target add {triple}`");
    process::run(rustup.args(["target", "add", &triple]), &hint)?;
    let python = tools()?;
    let out = fresh("wheel-build")?;
    let mut maturin = Command::new(&python);
    let line = format!(
        "-m maturin build --quiet --release --locked --zig --target {triple} --compatibility {MANYLINUX}"
    );
    maturin.args(line.split(' ')).arg("--out").arg(&out);
    match abi {
        Abi::Stable => maturin.args(["--interpreter", "python3.11"]),
        Abi::FreeThreaded => maturin.args([
            "--no-default-features",
            "--features",
            "pyo3/extension-module",
            "--interpreter",
            "python3.14t",
        ]),
    };
    // No interpreter of the target is needed: maturin knows what their builds look like.
    maturin.env(
        "PYO3_CROSS_PYTHON_VERSION",
        if abi == Abi::Stable { "3.11" } else { "3.14t" },
    );
    maturin.env("CARGO_TARGET_DIR", target());
    maturin.current_dir(root().join(package.folder()));
    process::run(&mut maturin, FAILED)?;
    let built = entries(&out)?;
    let wheel = folder.join(only(&built)?.file_name().unwrap_or_default());
    copy(only(&built)?, &wheel)?;
    Ok(vec![wheel])
}

/// The main job of the Python package, in an environment without anything else.
const FIT: &str = "\
import json, sys
import cupel
with open(sys.argv[1]) as file:
    request = json.load(file)
print(json.dumps({'kept': cupel.fit(request, sys.argv[2]).kept}))
";

/// The counts of `llama3` and `deepseek_v3`, as their own tokenizers have them, through the package that finds them.
const COUNT: &str = "\
import cupel
text = 'The quick brown fox jumps over the lazy dog.'
assert cupel.count(text, encoding='llama3') == 10, cupel.count(text, encoding='llama3')
assert cupel.count('你好，世界！今天天气不错。', encoding='deepseek_v3') == 8
assert cupel.count(text, model='llama-3.1-8b') == 10
print('counted')
";

/// Checks the size and the licenses of a wheel, installs it and runs it.
pub(super) fn check(
    package: Package,
    machine: Machine,
    abi: Abi,
    files: &[PathBuf],
) -> Result<&'static str, String> {
    let wheel = only(files)?;
    let bytes = std::fs::metadata(wheel).map_or(0, |it| it.len());
    if bytes > MOST_BYTES {
        return Err(format!(
            "{bytes} bytes, and at most {MOST_BYTES} are allowed"
        ));
    }
    let unpacked = fresh("wheel-content")?;
    unzip(wheel, &unpacked)?;
    has_licenses(package, &unpacked)?;
    let context = match package {
        Package::Context => wheel.clone(),
        Package::Vocabularies => other_wheel(wheel)?,
    };
    let wheels = if package == Package::Context {
        vec![context]
    } else {
        vec![context, wheel.clone()]
    };
    let (mut run, how) = match (machine.emulator()?, abi) {
        (_, Abi::FreeThreaded) => match free_threaded(&wheels)? {
            Some(run) if machine.emulator()?.is_none() => {
                (run, "installed into a new environment of CPython 3.14t")
            }
            _ => {
                return Ok(
                    "NOT RUN: no free-threaded interpreter here (CUPEL_PYTHON_FREE_THREADED names one)",
                );
            }
        },
        (None, Abi::Stable) => (
            installed("python3", &wheels)?,
            "installed into a new environment",
        ),
        (Some(emulator), Abi::Stable) => (
            emulated(&emulator, machine, &wheels)?,
            "unpacked for Debian's Python, with qemu",
        ),
    };
    match package {
        Package::Context => {
            run.args(["-c", FIT]).arg(root().join(CHAT)).arg(BUDGET);
            agrees(&process::output(&mut run)?)?;
        }
        Package::Vocabularies => {
            process::output(run.args(["-c", COUNT]))?;
        }
    }
    Ok(how)
}

/// Returns the wheel of the package `cupel-context` that belongs to one of the vocabularies.
fn other_wheel(wheel: &Path) -> Result<PathBuf, String> {
    let name = super::file_name(wheel).replace("cupel_vocabularies-", "cupel_context-");
    let other = wheel.with_file_name(name);
    if other.exists() {
        Ok(other)
    } else {
        Err(format!("build {} first", other.display()))
    }
}

/// Checks that the license files are in the metadata of the wheel.
fn has_licenses(package: Package, unpacked: &Path) -> Result<(), String> {
    let mut files = vec!["LICENSE", "licenses/LICENSE-OPENAI", "licenses/crates.txt"];
    if package == Package::Vocabularies {
        files.extend([
            "licenses/vocabularies/NOTICE",
            "licenses/vocabularies/LICENSE-LLAMA-3",
            "licenses/vocabularies/LICENSE-LLAMA-3.1",
            "licenses/vocabularies/LICENSE-DEEPSEEK",
            "licenses/vocabularies/LICENSE-KIMI-K2",
            "licenses/vocabularies/LICENSE-APACHE-2.0",
        ]);
    }
    let info = entries(unpacked)?;
    let info = info
        .iter()
        .find(|path| path.extension().is_some_and(|it| it == "dist-info"));
    let info = info.ok_or("the wheel has no dist-info")?;
    let missing = files
        .iter()
        .find(|file| !info.join("licenses").join(file).exists());
    missing.map_or(Ok(()), |file| Err(format!("the wheel has no {file}")))
}

fn unzip(wheel: &Path, folder: &Path) -> Result<(), String> {
    let mut unzip = Command::new("python3");
    unzip.args(["-m", "zipfile", "-e"]).arg(wheel).arg(folder);
    process::run(&mut unzip, FAILED)
}

/// Returns the interpreter of a new environment that has the wheels and nothing else.
fn installed(interpreter: &str, wheels: &[PathBuf]) -> Result<Command, String> {
    let folder = fresh("environment")?;
    let mut venv = Command::new(interpreter);
    process::run(
        venv.args(["-m", "venv"]).arg(&folder),
        "install Python with venv",
    )?;
    let python = folder.join("bin/python");
    let mut pip = Command::new(&python);
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-index",
        "--disable-pip-version-check",
    ]);
    process::run(pip.args(wheels), FAILED)?;
    let mut run = Command::new(python);
    run.env_clear().current_dir(folder);
    Ok(run)
}

/// Returns an interpreter without the GIL, if there is one.
fn free_threaded(wheels: &[PathBuf]) -> Result<Option<Command>, String> {
    let interpreter = std::env::var("CUPEL_PYTHON_FREE_THREADED");
    let interpreter = interpreter.unwrap_or_else(|_| "python3.14t".to_owned());
    if !process::succeeds(Command::new(&interpreter).arg("--version")) {
        return Ok(None);
    }
    installed(&interpreter, wheels).map(Some)
}

/// The Debian packages of Python and of the libraries that it loads.
const DEBIAN: &str = "libc6 libgcc-s1 zlib1g libexpat1 libssl3 libffi8 libbz2-1.0 liblzma5 libuuid1 libcrypt1 \
    libpython3.11-minimal libpython3.11-stdlib python3.11-minimal";

/// Returns Debian's Python for another processor with the wheels, in an emulator. Nothing is installed on this
/// machine: the packages are unpacked below `target`.
fn emulated(emulator: &Path, machine: Machine, wheels: &[PathBuf]) -> Result<Command, String> {
    let debian = match machine {
        Machine::X86_64 => "amd64",
        Machine::Aarch64 => "arm64",
    };
    let base = target().join("dist-check").join(format!("debian-{debian}"));
    let system = base.join("root");
    if !system.join("usr/bin/python3.11").exists() {
        for part in [
            "lists/partial",
            "cache/archives/partial",
            "root",
            "packages",
        ] {
            make_folder(&base.join(part))?;
        }
        super::write(&base.join("status"), "")?;
        let apt = |arguments: &str| {
            let base = base.display();
            let mut apt = Command::new("apt-get");
            apt.args(["-q", "-o", &format!("APT::Architecture={debian}")]);
            apt.args(["-o", &format!("APT::Architectures={debian}")]);
            apt.args(["-o", &format!("Dir::State::Lists={base}/lists")]);
            apt.args(["-o", &format!("Dir::Cache={base}/cache")]);
            apt.args(["-o", &format!("Dir::State::Status={base}/status")]);
            apt.args(arguments.split_whitespace())
                .current_dir(self::folder(&base.to_string()));
            process::run(&mut apt, "Debian's packages of Python could not be fetched")
        };
        apt("update")?;
        apt(&format!("download {DEBIAN}"))?;
        for package in entries(&base.join("packages"))? {
            let mut unpack = Command::new("dpkg-deb");
            process::run(unpack.arg("-x").arg(package).arg(&system), FAILED)?;
        }
    }
    let site = fresh("emulated-packages")?;
    for wheel in wheels {
        unzip(wheel, &site)?;
    }
    let mut run = Command::new(emulator);
    run.env_clear()
        .arg("-E")
        .arg(format!("PYTHONPATH={}", site.display()));
    run.arg("-L")
        .arg(&system)
        .arg(system.join("usr/bin/python3.11"));
    Ok(run)
}

/// The folder that apt downloads packages to.
fn folder(base: &str) -> PathBuf {
    Path::new(base).join("packages")
}

/// Builds an environment from a source distribution, without the network.
pub(super) fn from_source(sdist: &Path) -> Result<Command, String> {
    let folder = fresh("environment-sdist")?;
    let python = python::virtual_environment(&folder)?;
    let tools = tools()?;
    // maturin, which builds; pip would fetch it.
    let wheelhouse = fresh("wheelhouse")?;
    let mut fetch = Command::new(&tools);
    fetch.args([
        "-m",
        "pip",
        "download",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--dest",
    ]);
    fetch.arg(&wheelhouse).args(["maturin"]);
    process::run(&mut fetch, FAILED)?;
    let mut pip = Command::new(&python);
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-index",
    ]);
    pip.arg("--find-links").arg(&wheelhouse).arg(sdist);
    // Cargo has no registry, no cache and no network. The unoptimized build is the same code.
    pip.env("CARGO_HOME", fresh("cargo-home")?);
    pip.env("CARGO_NET_OFFLINE", "true");
    pip.env("MATURIN_PEP517_ARGS", "--profile dev");
    pip.env_remove("CARGO_TARGET_DIR");
    process::run(&mut pip, FAILED)?;
    let mut run = Command::new(python);
    run.env_clear().current_dir(folder);
    run.args(["-c", FIT]).arg(root().join(CHAT)).arg(BUDGET);
    Ok(run)
}

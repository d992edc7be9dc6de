//! The command as a static binary, in an archive with manual pages, completions and licenses.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{
    BUDGET, CHAT, FAILED, agrees, copy, fresh, make_folder, only, tar, untar, version, write,
};
use crate::{process, root, target};

/// A processor that Linux artifacts are built for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Machine {
    X86_64,
    Aarch64,
}

impl Machine {
    /// The name in the names of files.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }

    /// The target of static programs.
    fn musl(self) -> String {
        format!("{}-unknown-linux-musl", self.name())
    }

    /// Returns an emulator that runs its programs here; `None` if this machine is one.
    pub(super) fn emulator(self) -> Result<Option<PathBuf>, String> {
        if self.name() == std::env::consts::ARCH {
            return Ok(None);
        }
        let path = PathBuf::from(format!("/usr/bin/qemu-{}-static", self.name()));
        let hint = "install a static qemu-user emulator";
        process::install("qemu-user-static", || path.exists(), hint)?;
        Ok(Some(path))
    }

    /// Returns the emulator, or the program itself where none is needed, as a command with the program.
    pub(super) fn command(self, program: &Path) -> Result<Command, String> {
        Ok(match self.emulator()? {
            None => Command::new(program),
            Some(emulator) => {
                let mut command = Command::new(emulator);
                command.arg(program);
                command
            }
        })
    }
}

/// Builds the command and returns its path.
pub(super) fn program(machine: Machine) -> Result<PathBuf, String> {
    let triple = machine.musl();
    let mut rustup = Command::new("rustup");
    let hint = format!("install the target with `rustup target add {triple}`");
    process::run(rustup.args(["target", "add", &triple]), &hint)?;
    let line = format!(
        "build --quiet --release --locked --package cupel-cli --bin cupel --target {triple} --config profile.release.strip=true"
    );
    let mut build = process::cargo(line.split(' '));
    // There is no C code in it, so that the linker of Rust suffices for any processor.
    let linker = format!(
        "CARGO_TARGET_{}_LINKER",
        triple.replace('-', "_").to_uppercase()
    );
    build.env(linker, "rust-lld");
    process::run(&mut build, FAILED)?;
    Ok(target().join(triple).join("release/cupel"))
}

/// Builds the archive: the program, manual pages, completions and licenses.
pub(super) fn build(machine: Machine, folder: &Path) -> Result<Vec<PathBuf>, String> {
    let program = program(machine)?;
    let name = format!("cupel-{}-{}-linux", version()?, machine.name());
    let scratch = fresh(&format!("stage-{}", machine.name()))?;
    let stage = scratch.join(&name);
    make_folder(&stage.join("man"))?;
    make_folder(&stage.join("completions"))?;
    copy(&program, &stage.join("cupel"))?;
    for file in ["LICENSE", "README.md", "CHANGELOG.md"] {
        copy(&root().join(file), &stage)?;
    }
    copy(&root().join("crates/cupel-cli/licenses"), &stage)?;
    let mut man = machine.command(&program)?;
    process::output(man.arg("man").arg(stage.join("man")))?;
    for (shell, file) in [
        ("bash", "cupel.bash"),
        ("zsh", "_cupel"),
        ("fish", "cupel.fish"),
    ] {
        let mut completions = machine.command(&program)?;
        let script = process::output(completions.args(["completions", shell]))?;
        write(&stage.join("completions").join(file), &script)?;
    }
    let archive = folder.join(format!("{name}.tar.gz"));
    tar(&archive, &scratch, &name)?;
    Ok(vec![archive])
}

/// Unpacks the archive and runs the program where there is nothing but it.
pub(super) fn check(machine: Machine, files: &[PathBuf]) -> Result<&'static str, String> {
    let folder = fresh(&format!("binary-{}", machine.name()))?;
    untar(only(files)?, &folder)?;
    let unpacked = folder.join(format!("cupel-{}-{}-linux", version()?, machine.name()));
    for part in [
        "man/cupel-fit.1",
        "completions/_cupel",
        "licenses/vocabularies/NOTICE",
    ] {
        if !unpacked.join(part).exists() {
            return Err(format!("the archive has no {part}"));
        }
    }
    let empty = fresh(&format!("root-{}", machine.name()))?;
    copy(&unpacked.join("cupel"), &empty)?;
    run_in(machine, &empty, "/cupel")
}

/// Runs the main job in a root directory, which has no library, no shell and no `/proc`.
pub(super) fn run_in(
    machine: Machine,
    folder: &Path,
    program: &str,
) -> Result<&'static str, String> {
    copy(&root().join(CHAT), &folder.join("chat.json"))?;
    // The environment is empty, and so is `PATH`.
    let mut run = Command::new("/usr/sbin/chroot");
    run.arg(folder).env_clear();
    let how = match machine.emulator()? {
        None => "run in an empty root directory",
        Some(emulator) => {
            copy(&emulator, &folder.join("emulator"))?;
            run.arg("/emulator");
            "run in an empty root directory, with qemu"
        }
    };
    run.args([program, "fit", "/chat.json", "--json", "--budget", BUDGET]);
    agrees(&process::output(&mut run)?)?;
    Ok(how)
}

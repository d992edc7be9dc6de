//! Replaces files atomically: whatever happens in between, a file has its old content or all of the new one.
//!
//! The content goes to a temporary file in the same directory, is flushed to the disk (`fsync`), and then takes the
//! name of the target (`rename`), which POSIX guarantees to be atomic. Writing into the target itself would lose it:
//! opening it truncates it, and a full disk or `kill -9` leaves it that way. `cupel fit chat.json -o chat.json` has
//! no other copy of the chat.
//!
//! The new file has the mode, owner and group of the old one. A symbolic link stays; the file that it points to is
//! replaced. A second hard link keeps the old content.
//!
//! Some targets cannot be replaced and are written in place: what is not a regular file (a pipe, a terminal,
//! `/dev/null`), and a file that is writable where no other may take its name (a read-only directory, a mount point,
//! another owner).

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::failure::Failure;

/// Writes a whole file.
pub(crate) fn write_file(path: &Path, text: &str) -> Result<(), Failure> {
    let mut file = NewFile::create(path)?;
    match file.write_all(text.as_bytes()) {
        Ok(()) => file.commit(),
        Err(error) => Err(file.failure(&error)),
    }
}

/// Writes a whole new file. Returns whether it did: a file, a link or a directory of that name stays.
pub(crate) fn write_new_file(path: &Path, text: &str) -> Result<bool, Failure> {
    let fail = |error: &io::Error| Failure::io("write", path, error);
    let (temporary, mut file) = Temporary::create(path, None).map_err(|error| fail(&error))?;
    file.write_all(text.as_bytes())
        .and_then(|()| file.sync_all())
        .map_err(|error| fail(&error))?;
    // A hard link fails if the name is taken, where a rename would replace what has it.
    match fs::hard_link(&temporary.path, path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        // File systems without hard links.
        Err(_) => match OpenOptions::new().write(true).create_new(true).open(path) {
            Ok(mut file) => file
                .write_all(text.as_bytes())
                .map(|()| true)
                .map_err(|error| fail(&error)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(fail(&error)),
        },
    }
}

/// New content for a file, which keeps the old content until [`NewFile::commit`]. Dropped before, it changes nothing,
/// unless the file has to be written in place.
pub(crate) struct NewFile {
    /// The path as given, for messages.
    path: PathBuf,
    file: BufWriter<File>,
    how: How,
}

/// How the content gets to its target.
enum How {
    /// The temporary file takes the name of the target.
    Rename {
        temporary: Temporary,
        target: PathBuf,
        /// Whether there is a file to replace.
        is_old: bool,
    },
    /// The target is a regular file that is overwritten.
    InPlace,
    /// The target is a pipe, a terminal or another device.
    Stream,
}

impl NewFile {
    /// Starts to write a file.
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        if path == Path::new("-") {
            return Err(
                Failure::input("`-` is standard output, which the answer uses")
                    .help("name a file; ./- is a file named `-`"),
            );
        }
        let opened = open(path).map_err(|error| Failure::io("write", path, &error))?;
        let (file, how) = opened;
        Ok(Self {
            path: path.to_owned(),
            file: BufWriter::with_capacity(1 << 16, file),
            how,
        })
    }

    /// Gives the file its new content.
    pub(crate) fn commit(mut self) -> Result<(), Failure> {
        let committed = self.flush().and_then(|()| {
            let file = self.file.get_ref();
            match &mut self.how {
                How::Rename {
                    temporary, target, ..
                } => {
                    // Without it, a crash of the machine may leave the new name with no content.
                    file.sync_all()?;
                    temporary.rename_to(target)
                }
                How::InPlace => file.sync_all(),
                How::Stream => Ok(()),
            }
        });
        committed.map_err(|error| self.failure(&error))
    }

    /// Returns the failure of a write, and what it means for the file.
    pub(crate) fn failure(&self, error: &io::Error) -> Failure {
        let failure = Failure::io("write", &self.path, error);
        match &self.how {
            How::Rename { is_old: true, .. } => failure.or_help("the file is unchanged"),
            How::InPlace => failure.or_help(
                "the file is incomplete: it was written in place, because its directory does not allow to replace it",
            ),
            How::Rename { .. } | How::Stream => failure,
        }
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Opens the file that the content is written to.
fn open(path: &Path) -> io::Result<(File, How)> {
    // The kernel follows links here, with its own checks. A file that may not be written is not replaced either.
    let old = match OpenOptions::new().write(true).open(path) {
        Ok(old) => Some(old),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let metadata = old.as_ref().map(File::metadata).transpose()?;
    if metadata.as_ref().is_some_and(|it| !it.is_file()) {
        return Ok((old.expect("it has metadata"), How::Stream));
    }
    let Some(target) = follow_links(path) else {
        // A descriptor of this process, such as /dev/stdout, that is redirected to a file. Other programs write to the
        // file, too, and hold it open: what it has must stay, and so must the file.
        let file = OpenOptions::new().append(true).open(path)?;
        return Ok((file, How::Stream));
    };
    match (Temporary::create(&target, metadata.as_ref()), old) {
        (Ok((temporary, file)), old) => {
            let is_old = old.is_some();
            let how = How::Rename {
                temporary,
                target,
                is_old,
            };
            Ok((file, how))
        }
        (Err(error), Some(old)) if is_refused(&error) => {
            old.set_len(0)?;
            Ok((old, How::InPlace))
        }
        (Err(error), _) => Err(error),
    }
}

/// Returns whether an operation is not allowed, as opposed to one that failed: the file may be written in place.
/// `ResourceBusy` is the answer of a mount point, `PermissionDenied` that of a directory.
fn is_refused(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::PermissionDenied
            | ErrorKind::ReadOnlyFilesystem
            | ErrorKind::ResourceBusy
            | ErrorKind::CrossesDevices
    )
}

/// Returns the file that a path names after all symbolic links; `None` for a link to an open descriptor.
fn follow_links(path: &Path) -> Option<PathBuf> {
    /// Linux gives up after as many (`path_resolution(7)`); opening the file fails then.
    const MAX_LINKS: usize = 40;
    let mut target = path.to_owned();
    for _ in 0..MAX_LINKS {
        let Ok(link) = fs::read_link(&target) else {
            break;
        };
        let directory = directory(&target);
        if fs::canonicalize(directory).is_ok_and(|directory| directory.starts_with("/proc")) {
            return None;
        }
        target = directory.join(link);
    }
    Some(target)
}

fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(directory) if !directory.as_os_str().is_empty() => directory,
        _ => Path::new("."),
    }
}

/// A file next to the one that it is to replace. It is deleted unless it does so.
struct Temporary {
    path: PathBuf,
    /// Whether it has taken the name of the target. Its own name is free then, even for others.
    is_renamed: bool,
}

impl Temporary {
    /// Creates an empty file next to `target`, with the mode, owner and group of the old file.
    fn create(target: &Path, old: Option<&Metadata>) -> io::Result<(Self, File)> {
        /// Makes the names of this process unique: threads may write at the same time.
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        if old.is_some() {
            make_private(&mut options);
        }
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            // Not derived from the name of the target, which may have the full length of a name already.
            let name = format!(".cupel-{}-{number}.tmp", std::process::id());
            let path = directory(target).join(name);
            match options.open(&path) {
                Ok(file) => {
                    let temporary = Self {
                        path,
                        is_renamed: false,
                    };
                    if let Some(old) = old {
                        copy_owner(&file, old)?;
                        // After the owner: a change of owner clears bits of the mode.
                        file.set_permissions(old.permissions())?;
                    }
                    return Ok((temporary, file));
                }
                // A killed process with the same id left it.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn rename_to(&mut self, target: &Path) -> io::Result<()> {
        match fs::rename(&self.path, target) {
            Ok(()) => {
                self.is_renamed = true;
                Ok(())
            }
            // A mount point, such as a single file in a container, can only be written in place.
            Err(error) if is_refused(&error) => {
                let mut new = File::open(&self.path)?;
                let mut old = OpenOptions::new().write(true).truncate(true).open(target)?;
                io::copy(&mut new, &mut old)?;
                old.sync_all()
            }
            Err(error) => Err(error),
        }
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.is_renamed {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Lets only the owner read the file until it has the mode of the old one.
#[cfg(unix)]
fn make_private(options: &mut OpenOptions) {
    use std::os::unix::fs::OpenOptionsExt as _;
    options.mode(0o600);
}

#[cfg(not(unix))]
fn make_private(_: &mut OpenOptions) {}

/// Gives the file the owner and group of another one.
#[cfg(unix)]
fn copy_owner(file: &File, of: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt as _, fchown};
    let new = file.metadata()?;
    if (new.uid(), new.gid()) == (of.uid(), of.gid()) {
        return Ok(());
    }
    fchown(file, Some(of.uid()), Some(of.gid()))
}

#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "it may fail on Unix")]
fn copy_owner(_: &File, _: &Metadata) -> io::Result<()> {
    Ok(())
}

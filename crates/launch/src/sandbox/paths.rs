//! Host paths a specification asks for, checked and resolved before anything is mounted.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use steelyard_model::{RootView, SandboxSpec};

use super::error::{READ_ONLY, SandboxError, WRITABLE};
use super::mounts::Access;

/// Where an idle copy of a mount waits that must be shown anew in each run.
pub(super) const HIDDEN: &str = "/.steelyard";

/// Directories that are new and empty in each run.
pub(super) const FRESH: [&str; 3] = ["/tmp", "/box", "/dev/shm"];

/// One host path shown at the same place inside.
#[derive(Debug, Clone)]
pub(super) struct Extra {
    /// The host path without symbolic links.
    pub source: PathBuf,
    /// The path as it was asked for.
    pub target: PathBuf,
    pub access: Access,
    pub is_directory: bool,
}

impl Extra {
    /// Whether it lies in a directory that is new in each run, so that each run binds it again.
    pub(super) fn is_per_run(&self) -> bool {
        FRESH.iter().any(|fresh| self.target.starts_with(fresh))
    }

    pub(super) fn field(&self) -> &'static str {
        if self.access == Access::Writable { WRITABLE } else { READ_ONLY }
    }
}

/// The host tree that becomes the root.
#[derive(Debug, Clone)]
pub(super) enum Tree {
    Host,
    Directory(PathBuf),
}

/// Resolves the root view.
pub(super) fn resolve_tree(spec: &SandboxSpec) -> Result<Tree, SandboxError> {
    match &spec.root {
        RootView::Host => Ok(Tree::Host),
        RootView::Directory { path } => {
            let (source, is_directory) = resolve("root.path", path)?;
            if !is_directory || source == Path::new("/") {
                return Err(SandboxError::path("root.path", path, "must be a directory other than `/`"));
            }
            Ok(Tree::Directory(source))
        }
        other => Err(SandboxError::path("root", Path::new("?"), format!("{other:?} is not known"))),
    }
}

/// Resolves `read_only` and `writable`, outer paths before inner ones.
pub(super) fn resolve_extras(spec: &SandboxSpec) -> Result<Vec<Extra>, SandboxError> {
    let asked =
        [(READ_ONLY, Access::ReadOnly, &spec.read_only), (WRITABLE, Access::Writable, &spec.writable)];
    let mut extras = Vec::new();
    for (field, access, paths) in asked {
        for path in paths {
            let target = lexical(field, path)?;
            let (source, is_directory) = resolve(field, path)?;
            extras.push(Extra { source, target, access, is_directory });
        }
    }
    extras.sort_by(|a, b| a.target.cmp(&b.target));
    Ok(extras)
}

/// An absolute path free of `.` and `..`, outside what the sandbox makes itself.
fn lexical(field: &'static str, path: &Path) -> Result<PathBuf, SandboxError> {
    let wrong = |problem: &str| Err(SandboxError::path(field, path, problem));
    if !path.is_absolute() {
        return wrong("must be absolute");
    }
    if path.components().any(|part| part == Component::ParentDir) {
        return wrong("must not contain `..`");
    }
    let clean: PathBuf = path.components().collect();
    let reserved = ["/proc", "/sys", "/dev", HIDDEN];
    if clean == Path::new("/") || FRESH.iter().any(|fresh| clean == Path::new(fresh)) {
        return wrong("is made by the sandbox itself; name a path below or beside it");
    }
    if reserved.iter().any(|place| clean.starts_with(place)) && !clean.starts_with("/dev/shm") {
        return wrong("lies in `/proc`, `/sys` or `/dev`, which the sandbox makes itself");
    }
    Ok(clean)
}

/// A remark on each writable path that its owner has not opened to the user of the runs.
///
/// The sandbox does not widen permissions: a program that could write as the owner could leave
/// set-user-id programs on the host.
pub(super) fn unwritable(extras: &[Extra], user_id: u32) -> Vec<String> {
    extras
        .iter()
        .filter(|extra| extra.access == Access::Writable && !is_writable_by(&extra.source, user_id))
        .map(|extra| {
            let path = extra.target.display();
            format!("user {user_id} cannot write `{path}`: its owner and mode do not allow it (`chown {user_id} {path}`)")
        })
        .collect()
}

fn is_writable_by(path: &Path, user_id: u32) -> bool {
    path.metadata().is_ok_and(|found| {
        let bit = match (found.uid() == user_id, found.gid() == user_id) {
            (true, _) => 0o200,
            (false, true) => 0o020,
            (false, false) => 0o002,
        };
        found.mode() & bit != 0
    })
}

fn resolve(field: &'static str, path: &Path) -> Result<(PathBuf, bool), SandboxError> {
    let described = |error: std::io::Error| SandboxError::path(field, path, error.to_string());
    let source = path.canonicalize().map_err(described)?;
    let kind = source.metadata().map_err(described)?;
    if !kind.is_dir() && !kind.is_file() {
        return Err(SandboxError::path(field, path, "must be a file or a directory"));
    }
    Ok((source, kind.is_dir()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asking(read_only: &[&str]) -> SandboxSpec {
        SandboxSpec { read_only: read_only.iter().map(PathBuf::from).collect(), ..SandboxSpec::default() }
    }

    #[test]
    fn the_root_cannot_be_shown_whole() {
        for path in ["/", "/.", "/proc/1", "/dev", "/tmp", "relative", "/usr/../root"] {
            let error = resolve_extras(&asking(&[path])).unwrap_err();
            assert!(error.to_string().contains("read_only"), "{path}: {error}");
        }
    }

    #[test]
    fn outer_paths_come_first() {
        let extras = resolve_extras(&asking(&["/usr/bin", "/usr"])).unwrap();
        assert_eq!(extras[0].target, Path::new("/usr"));
    }

    #[test]
    fn a_missing_path_is_named() {
        let error = resolve_extras(&asking(&["/no/such/place"])).unwrap_err();
        assert!(error.to_string().contains("/no/such/place"), "{error}");
        assert!(error.hint().contains("read_only"));
    }
}

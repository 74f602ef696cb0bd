use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use steelyard_host::cgroup::{Controller, Hierarchy, Layout};

use crate::GovernError;
use crate::process::{Identity, start_ticks};
use crate::text_file::{look, put};

/// Name of the group of all best-effort commands.
const NAME: &str = "steelyard-background";

/// Times a group is made again that another command's sweep has removed.
const TRIES: u32 = 8;

/// Generation of a control group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Version {
    /// One hierarchy per controller.
    V1,
    /// One hierarchy for all.
    V2,
}

impl Version {
    /// 1 or 2.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::V1 => 1,
            Self::V2 => 2,
        }
    }
}

/// The group that has the cpu controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuHome {
    /// Its folder.
    pub path: PathBuf,
    /// Its version.
    pub version: Version,
}

/// Where best-effort commands live: a group `steelyard-background` as high in each hierarchy as this
/// user may make one, so that it competes with everything else there is; below it one group for each
/// command.
///
/// A host with version 1 controllers often has a version 2 tree beside them: it has no quota, but a
/// freezer that lets SIGKILL through, and pressure.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Home {
    /// The group with weight and quota.
    pub cpu: Option<CpuHome>,
    /// The version 2 group.
    pub unified: Option<PathBuf>,
    /// The version 1 group with a freezer; left out where there is a version 2 group.
    pub freezer: Option<PathBuf>,
}

impl Home {
    /// Makes the groups, or takes those that are there.
    #[must_use]
    pub fn claim(layout: &Layout) -> Self {
        let mut home = Self::default();
        let mut cpu = None;
        if let Some(hierarchy) = &layout.v2 {
            let places = places(hierarchy);
            let with_cpu = places.iter().find_map(|parent| claim_below(parent, true));
            cpu = with_cpu.clone().map(|path| CpuHome { path, version: Version::V2 });
            home.unified = with_cpu.or_else(|| places.iter().find_map(|parent| claim_below(parent, false)));
        }
        home.cpu = cpu.or_else(|| {
            let path = claim_legacy(layout, Controller::Cpu)?;
            Some(CpuHome { path, version: Version::V1 })
        });
        if home.unified.is_none() {
            home.freezer = claim_legacy(layout, Controller::Freezer);
        }
        home
    }

    /// A home that consists of one version 2 group somebody has named.
    #[must_use]
    pub fn of_unified(path: PathBuf) -> Self {
        let has_cpu = path.join("cpu.max").exists();
        let cpu = has_cpu.then(|| CpuHome { path: path.clone(), version: Version::V2 });
        Self { cpu, unified: Some(path), freezer: None }
    }

    /// Its groups, each once.
    #[must_use]
    pub fn groups(&self) -> Vec<&Path> {
        let mut groups: Vec<&Path> = Vec::new();
        let all = self.cpu.iter().map(|cpu| &cpu.path).chain(&self.unified).chain(&self.freezer);
        for path in all {
            if !groups.contains(&path.as_path()) {
                groups.push(path);
            }
        }
        groups
    }

    /// Gives the group the least the CPU controller can give; says what was written.
    ///
    /// # Errors
    ///
    /// [`GovernError::Capability`] where there is no CPU controller, [`GovernError::System`] where the
    /// kernel refuses.
    pub fn weaken(&self) -> Result<String, GovernError> {
        let Some(cpu) = &self.cpu else {
            return Err(GovernError::capability("no group with a CPU controller", "run as root"));
        };
        let version = cpu.version.number();
        let idle = cpu.path.join("cpu.idle");
        if look(&idle).as_deref() == Some("1") || put(&idle, "1").is_ok() {
            return Ok(format!("cpu.idle=1 (version {version})"));
        }
        // SOURCE: smallest values of cpu.weight (cgroup-v2.rst) and cpu.shares (MIN_SHARES in sched.h).
        let (name, value) = match cpu.version {
            Version::V1 => ("cpu.shares", "2"),
            Version::V2 => ("cpu.weight", "1"),
        };
        let path = cpu.path.join(name);
        put(&path, value).map_err(|source| GovernError::writing(&path, source))?;
        Ok(format!("{name}={value} (version {version})"))
    }

    /// Moves this process into a group of its own in each hierarchy; gives those it could not enter.
    #[must_use]
    pub fn enter(&self) -> Vec<GovernError> {
        let own = Identity::own();
        let name = format!("{}-{}", own.process_id, own.start_ticks);
        self.groups().into_iter().filter_map(|group| enter_below(group, &name).err()).collect()
    }

    /// Removes the groups of commands that have ended.
    pub fn sweep(&self) {
        for group in self.groups() {
            for child in children(group) {
                if !has_living_owner(&child) {
                    remove_empty(&child);
                }
            }
        }
    }

    /// Removes everything that is empty.
    pub fn remove(&self) {
        self.sweep();
        for group in self.groups() {
            // Refused by the kernel while a command lives in it.
            let _ = fs::remove_dir(group);
        }
    }

    /// Processes of all best-effort commands.
    #[must_use]
    pub fn processes(&self) -> Vec<i32> {
        self.groups().first().map(|group| processes_below(group)).unwrap_or_default()
    }
}

/// Processes in a group and below it.
pub(crate) fn processes_below(group: &Path) -> Vec<i32> {
    let text = look(&group.join("cgroup.procs")).unwrap_or_default();
    let mut found: Vec<i32> = text.lines().filter_map(|line| line.parse().ok()).collect();
    for child in children(group) {
        found.extend(processes_below(&child));
    }
    found
}

pub(crate) fn children(group: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(group) else { return Vec::new() };
    let folders = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.map(|entry| entry.path()).collect()
}

/// The groups from the visible root down to the own one. Below a group of ours there is none: a
/// command that starts another one best-effort must not nest.
fn places(hierarchy: &Hierarchy) -> Vec<PathBuf> {
    let upwards = hierarchy.group.ancestors().take_while(|path| path.starts_with(&hierarchy.mount));
    let is_ours = |path: &Path| path.components().any(|part| part.as_os_str() == NAME);
    let mut places: Vec<PathBuf> = upwards.filter(|path| !is_ours(path)).map(Path::to_owned).collect();
    places.reverse();
    places
}

fn claim_below(parent: &Path, needs_cpu: bool) -> Option<PathBuf> {
    if needs_cpu && !hands_down_cpu(parent) {
        return None;
    }
    let path = parent.join(NAME);
    let is_new = match fs::create_dir(&path) {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
        Err(_) => return None,
    };
    let is_writable = nix::unistd::access(&path.join("cgroup.procs"), nix::unistd::AccessFlags::W_OK).is_ok();
    let is_useful = is_writable && (!needs_cpu || path.join("cpu.max").exists());
    if !is_useful && is_new {
        let _ = fs::remove_dir(&path);
    }
    is_useful.then_some(path)
}

/// Whether the children of a version 2 group have the CPU controller; asks for it where they have not.
fn hands_down_cpu(parent: &Path) -> bool {
    let file = parent.join("cgroup.subtree_control");
    let has =
        |path: &Path| look(path).is_some_and(|text| text.split_ascii_whitespace().any(|word| word == "cpu"));
    has(&file) || (has(&parent.join("cgroup.controllers")) && put(&file, "+cpu").is_ok())
}

fn claim_legacy(layout: &Layout, controller: Controller) -> Option<PathBuf> {
    let hierarchy = layout.v1.iter().find(|hierarchy| hierarchy.controllers.contains(&controller))?;
    places(hierarchy).iter().find_map(|parent| claim_below(parent, false))
}

fn enter_below(group: &Path, name: &str) -> Result<(), GovernError> {
    let path = group.join(name);
    let mut tries = 0;
    loop {
        tries += 1;
        let made = fs::create_dir(&path)
            .or_else(|error| if error.kind() == io::ErrorKind::AlreadyExists { Ok(()) } else { Err(error) });
        // A sweep in another pid namespace does not see the owner and may be between the two calls.
        match made.and_then(|()| put(&path.join("cgroup.procs"), "0")) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound && tries < TRIES => {
                // A governor that ends takes the empty group of all commands with it.
                let _ = fs::create_dir(group);
            }
            Err(source) => {
                let _ = fs::remove_dir(&path);
                return Err(GovernError::system(
                    format!("cannot enter the group `{}`", path.display()),
                    source,
                ));
            }
        }
    }
}

fn has_living_owner(group: &Path) -> bool {
    let parts = group.file_name().and_then(|name| name.to_str()).and_then(|name| name.split_once('-'));
    let Some((id, start)) = parts else { return false };
    id.parse().ok().and_then(start_ticks).is_some_and(|ticks| ticks.to_string() == start)
}

/// Removes a group and those below it, as far as nothing lives in them: the kernel refuses the rest.
fn remove_empty(group: &Path) {
    for child in children(group) {
        remove_empty(&child);
    }
    let _ = fs::remove_dir(group);
}

use serde::{Deserialize, Serialize};

use crate::HostRoot;

/// One process at one instant, with the CPU time it has used so far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Process id.
    pub id: u32,
    /// Its parent.
    pub parent_id: u32,
    /// Name of its program, at most 15 characters.
    pub name: String,
    /// State letter of `/proc/<pid>/stat`.
    pub state: char,
    /// User plus system time of all its threads, in units of the kernel's user clock.
    pub cpu_ticks: u64,
    /// When it started, in the same units since boot; tells a reused id.
    pub start_ticks: u64,
    /// Every group it is in, as `controllers:path`.
    pub groups: Vec<String>,
}

/// Lists the processes with their CPU time. Processes that end meanwhile are left out.
#[must_use]
pub fn read_processes(root: &HostRoot) -> Vec<Process> {
    root.numbered("/proc", "").into_iter().filter_map(|id| read_process(root, id)).collect()
}

fn read_process(root: &HostRoot, id: u32) -> Option<Process> {
    let stat = root.text(&format!("/proc/{id}/stat"))?;
    // The name may hold blanks and parentheses: it ends at the last one.
    let (head, tail) = stat.rsplit_once(')')?;
    let name = head.split_once('(')?.1.to_owned();
    let fields: Vec<&str> = tail.split_whitespace().collect();
    let number = |index: usize| fields.get(index).and_then(|field| field.parse::<u64>().ok());
    let groups = root.text(&format!("/proc/{id}/cgroup")).unwrap_or_default();
    // SOURCE: proc_pid_stat(5): state is field 3, ppid 4, utime 14, stime 15, starttime 22.
    Some(Process {
        id,
        parent_id: u32::try_from(number(1)?).ok()?,
        name,
        state: fields.first()?.chars().next()?,
        cpu_ticks: number(11)?.saturating_add(number(12)?),
        start_ticks: number(19)?,
        groups: groups.lines().filter_map(|line| Some(line.split_once(':')?.1.to_owned())).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_is_read_whole_and_damage_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let write = |id: &str, text: &str| {
            let place = folder.path().join("proc").join(id);
            std::fs::create_dir_all(&place).unwrap();
            std::fs::write(place.join("stat"), text).unwrap();
        };
        write("7", "7 (a) b (c)) R 1 7 7 0 -1 4194304 9 0 0 0 20 5 0 0 20 0 1 0 4242 1 1");
        write("8", "8 (short) S 1");
        write("9", "");
        let found = read_processes(&HostRoot::at(folder.path()));
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].name.as_str(), found[0].cpu_ticks, found[0].start_ticks),
            ("a) b (c)", 25, 4242)
        );
        assert_eq!((found[0].state, found[0].parent_id), ('R', 1));
    }

    #[test]
    fn this_process_is_found_on_the_running_system() {
        let own = std::process::id();
        assert!(read_processes(&HostRoot::system()).iter().any(|process| process.id == own));
    }
}

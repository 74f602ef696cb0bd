//! What the class uses of the running kernel: which of several names or forms, and why.

use serde_json::{Value, json};

/// What the kernel's type information says; a part of it can be made up in a test.
pub trait Types {
    /// Parameters of a function; `None`: the kernel has no such function.
    fn parameters(&self, function: &str) -> Option<usize>;
    /// Whether a structure has a member of that name.
    fn has_member(&self, structure: &str, member: &str) -> bool;
    /// Value of a name in an enumeration; `None`: it knows no such name.
    fn enumerator(&self, enumeration: &str, name: &str) -> Option<u64>;
}

/// A name of a function with its number of parameters, and the first kernel that has it.
type Form = (&'static str, usize, &'static str);

/// Functions that the class calls, newest name first; the kernel has to have one of each line.
///
/// KERNEL: Debian's 7.1.13 and 7.2.12 show a hidden parameter of some; the kernel then refuses every scheduler.
const FUNCTIONS: [&[Form]; 16] = [
    &[
        ("scx_bpf_dsq_insert___v2", 4, "6.19"),
        ("scx_bpf_dsq_insert", 4, "6.13"),
        ("scx_bpf_dispatch", 4, "6.12"),
    ],
    &[
        ("__scx_bpf_dsq_insert_vtime", 2, "6.19"),
        ("scx_bpf_dsq_insert_vtime", 5, "6.13"),
        ("scx_bpf_dispatch_vtime", 5, "6.12"),
    ],
    &[
        ("scx_bpf_dsq_move_to_local___v2", 2, "7.1"),
        ("scx_bpf_dsq_move_to_local", 1, "6.13"),
        ("scx_bpf_consume", 1, "6.12"),
    ],
    &[("scx_bpf_dsq_move", 4, "6.13"), ("scx_bpf_dispatch_from_dsq", 4, "6.12")],
    &[("scx_bpf_dsq_move_vtime", 4, "6.13"), ("scx_bpf_dispatch_vtime_from_dsq", 4, "6.12")],
    &[("scx_bpf_dsq_move_set_slice", 2, "6.13"), ("scx_bpf_dispatch_from_dsq_set_slice", 2, "6.12")],
    &[("scx_bpf_dsq_move_set_vtime", 2, "6.13"), ("scx_bpf_dispatch_from_dsq_set_vtime", 2, "6.12")],
    &[("scx_bpf_reenqueue_local___v2", 0, "6.19"), ("scx_bpf_reenqueue_local", 0, "6.12")],
    &[("scx_bpf_create_dsq", 2, "6.12")],
    &[("scx_bpf_dsq_nr_queued", 1, "6.12")],
    &[("scx_bpf_kick_cpu", 2, "6.12")],
    &[("scx_bpf_pick_idle_cpu", 2, "6.12")],
    &[("scx_bpf_test_and_clear_cpu_idle", 1, "6.12")],
    &[("scx_bpf_select_cpu_dfl", 4, "6.12")],
    &[("scx_bpf_task_cpu", 1, "6.12")],
    &[("bpf_iter_scx_dsq_new", 3, "6.12")],
];

/// Functions that the class calls where there are several memory nodes and the kernel has one of each line.
const IDLE_OF_NODES: [&[Form]; 3] = [
    &[("scx_bpf_pick_idle_cpu_node", 3, "6.15")],
    &[("scx_bpf_cpu_node", 1, "6.15")],
    &[("__scx_bpf_select_cpu_and", 3, "6.19"), ("scx_bpf_select_cpu_and", 5, "6.16")],
];

/// Something that not every kernel has, and what the class does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Feature {
    /// What it is, as the kernel calls it.
    pub name: String,
    /// Whether the class uses it.
    pub is_used: bool,
    /// What follows from that, one sentence without a full stop.
    pub why: String,
}

impl Feature {
    /// Give the form for programs.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({"name": self.name, "used": self.is_used, "why": self.why})
    }
}

/// Functions that are missing, or not as the class calls them: one sentence each.
#[must_use]
pub fn missing_functions(types: &dyn Types) -> Vec<String> {
    FUNCTIONS.iter().filter_map(|forms| misfit(types, forms)).collect()
}

/// Whether what waits for a CPU can be taken back from everywhere; else within `cpu_release` alone.
#[must_use]
pub fn has_reenqueue_everywhere(types: &dyn Types) -> bool {
    types.parameters("scx_bpf_reenqueue_local___v2") == Some(0)
}

/// Whether the kernel keeps idle CPUs for each memory node, and chooses one of a node for a task that wakes.
#[must_use]
pub fn has_idle_of_nodes(types: &dyn Types) -> bool {
    types.enumerator("scx_ops_flags", "SCX_OPS_BUILTIN_IDLE_PER_NODE").is_some()
        && IDLE_OF_NODES.iter().all(|forms| forms.iter().any(|form| is_usable(types, form)))
}

fn is_usable(types: &dyn Types, (name, parameters, _): &Form) -> bool {
    types.parameters(name) == Some(*parameters)
}

fn misfit(types: &dyn Types, forms: &[Form]) -> Option<String> {
    if forms.iter().any(|form| is_usable(types, form)) {
        return None;
    }
    let found = forms.iter().find_map(|form| types.parameters(form.0).map(|count| (form, count)));
    if let Some(((name, usual, _), count)) = found {
        return Some(format!(
            "the kernel's type information gives `{name}` {count} parameters instead of {usual}: it was built with a defect, another kernel package may be without"
        ));
    }
    let names: Vec<String> = forms.iter().map(|form| format!("`{}`", form.0)).collect();
    Some(format!(
        "the kernel has no function {}: it is too old or too new for this class",
        names.join(" or ")
    ))
}

/// What the class uses of what not every kernel has.
#[must_use]
pub fn features(types: &dyn Types) -> Vec<Feature> {
    let renamed = FUNCTIONS.iter().filter(|forms| forms.len() > 1);
    let mut found: Vec<Feature> = renamed.filter_map(|forms| name_used(types, forms)).collect();
    let mut add = |name: &str, is_used: bool, with: &str, without: &str| {
        let why = if is_used { with } else { without };
        found.push(Feature { name: name.to_owned(), is_used, why: why.to_owned() });
    };
    add(
        "scx_bpf_task_set_slice",
        types.parameters("scx_bpf_task_set_slice").is_some(),
        "the kernel sets what is left of a slice",
        "the kernel is older than 6.19: the class writes what is left of a slice itself",
    );
    add(
        "SCX_OPS_ENQ_MIGRATION_DISABLED",
        types.enumerator("scx_ops_flags", "SCX_OPS_ENQ_MIGRATION_DISABLED").is_some(),
        "the class asks to be given tasks that cannot leave their CPU at the moment",
        "the kernel is older than 6.14: it gives the class such tasks in any case",
    );
    add(
        "SCX_OPS_BUILTIN_IDLE_PER_NODE",
        has_idle_of_nodes(types),
        "with several memory nodes, a service that wakes is kept in its own as long as a CPU there is idle or runs a job",
        "the kernel is older than 6.16: an idle CPU of another memory node comes before one of the own that runs a job",
    );
    add(
        "CONFIG_PREEMPT_RCU",
        types.has_member("task_struct", "rcu_read_lock_nesting"),
        "a task that loses its CPU while it reads under RCU gets moments to end that",
        "no task loses its CPU while it reads under RCU: no moments are needed for that",
    );
    add(
        "mutex.owner",
        types.has_member("mutex", "owner"),
        "the holder of a mutex is known and gets the CPU of a service that waits for it",
        "the kernel does not say who holds a mutex: all jobs inside of the kernel get moments while a service waits for one",
    );
    found
}

fn name_used(types: &dyn Types, forms: &[Form]) -> Option<Feature> {
    let place = forms.iter().position(|form| is_usable(types, form))?;
    let (name, _, since) = forms[place];
    let why = match place.checked_sub(1).map(|newer| forms[newer]) {
        None => format!("the newest name, since {since}"),
        Some((newer, _, first)) if types.parameters(newer).is_none() => {
            format!("the kernel has no `{newer}`, which is there since {first}")
        }
        Some((newer, usual, _)) => format!("the kernel's `{newer}` has not {usual} parameters"),
    };
    Some(Feature { name: name.to_owned(), is_used: true, why })
}

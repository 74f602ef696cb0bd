/// Names of the counters a [`RunSpec`](crate::RunSpec) may ask for, as `perf list` prints them.
///
/// Whether a machine offers a counter is found out when it is asked for; a name that is not here
/// means nothing on any machine.
pub const COUNTER_NAMES: &[&str] = &[
    "task-clock",
    "cpu-clock",
    "page-faults",
    "context-switches",
    "cpu-migrations",
    "minor-faults",
    "major-faults",
    "alignment-faults",
    "emulation-faults",
    "cpu-cycles",
    "instructions",
    "cache-references",
    "cache-misses",
    "branch-instructions",
    "branch-misses",
    "bus-cycles",
    "stalled-cycles-frontend",
    "stalled-cycles-backend",
    "ref-cycles",
    "L1-dcache-loads",
    "L1-dcache-load-misses",
    "L1-dcache-stores",
    "L1-dcache-store-misses",
    "L1-icache-load-misses",
    "LLC-loads",
    "LLC-load-misses",
    "LLC-stores",
    "LLC-store-misses",
    "dTLB-loads",
    "dTLB-load-misses",
    "iTLB-load-misses",
];

/// Other names of the same counters: alias, then name.
pub const COUNTER_ALIASES: &[(&str, &str)] = &[
    ("cs", "context-switches"),
    ("faults", "page-faults"),
    ("migrations", "cpu-migrations"),
    ("cycles", "cpu-cycles"),
    ("branches", "branch-instructions"),
];

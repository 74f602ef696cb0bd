use steelyard_model::COUNTER_ALIASES;
use steelyard_perf::{TYPE_CACHE, TYPE_HARDWARE, TYPE_SOFTWARE};

/// A counting event by the kernel's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Event {
    pub(super) kind: u32,
    pub(super) config: u64,
}

impl Event {
    pub(crate) const TASK_CLOCK: Self = software(1);
    pub(crate) const CPU_MIGRATIONS: Self = software(4);
    pub(crate) const MINOR_FAULTS: Self = software(5);
    pub(crate) const MAJOR_FAULTS: Self = software(6);

    /// Whether its occurrences are all in the kernel, so that it counts nothing without it.
    pub(super) const fn is_kernel_only(self) -> bool {
        self.kind == TYPE_SOFTWARE && matches!(self.config, 3 | 4)
    }

    pub(super) const fn needs_hardware(self) -> bool {
        self.kind != TYPE_SOFTWARE
    }
}

const fn software(config: u64) -> Event {
    Event { kind: TYPE_SOFTWARE, config }
}

const fn hardware(config: u64) -> Event {
    Event { kind: TYPE_HARDWARE, config }
}

/// SOURCE: `perf_event_open(2)`: cache id, operation shifted by 8, result shifted by 16.
const fn cache(id: u64, operation: u64, result: u64) -> Event {
    Event { kind: TYPE_CACHE, config: id | (operation << 8) | (result << 16) }
}

/// The kernel's numbers of each of [`steelyard_model::COUNTER_NAMES`].
/// SOURCE: `include/uapi/linux/perf_event.h`.
const EVENTS: &[(&str, Event)] = &[
    ("task-clock", Event::TASK_CLOCK),
    ("cpu-clock", software(0)),
    ("page-faults", software(2)),
    ("context-switches", software(3)),
    ("cpu-migrations", Event::CPU_MIGRATIONS),
    ("minor-faults", Event::MINOR_FAULTS),
    ("major-faults", Event::MAJOR_FAULTS),
    ("alignment-faults", software(7)),
    ("emulation-faults", software(8)),
    ("cpu-cycles", hardware(0)),
    ("instructions", hardware(1)),
    ("cache-references", hardware(2)),
    ("cache-misses", hardware(3)),
    ("branch-instructions", hardware(4)),
    ("branch-misses", hardware(5)),
    ("bus-cycles", hardware(6)),
    ("stalled-cycles-frontend", hardware(7)),
    ("stalled-cycles-backend", hardware(8)),
    ("ref-cycles", hardware(9)),
    ("L1-dcache-loads", cache(0, 0, 0)),
    ("L1-dcache-load-misses", cache(0, 0, 1)),
    ("L1-dcache-stores", cache(0, 1, 0)),
    ("L1-dcache-store-misses", cache(0, 1, 1)),
    ("L1-icache-load-misses", cache(1, 0, 1)),
    ("LLC-loads", cache(2, 0, 0)),
    ("LLC-load-misses", cache(2, 0, 1)),
    ("LLC-stores", cache(2, 1, 0)),
    ("LLC-store-misses", cache(2, 1, 1)),
    ("dTLB-loads", cache(3, 0, 0)),
    ("dTLB-load-misses", cache(3, 0, 1)),
    ("iTLB-load-misses", cache(4, 0, 1)),
];

/// The event of a name.
pub(crate) fn find_event(name: &str) -> Option<Event> {
    let plain = COUNTER_ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, plain)| plain);
    EVENTS.iter().find(|(known, _)| *known == plain).map(|(_, event)| *event)
}

/// Every name, for messages.
pub(crate) fn event_names() -> String {
    EVENTS.iter().map(|(name, _)| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_the_vocabulary_has_its_event_and_no_other_has() {
        let known: Vec<&str> = EVENTS.iter().map(|(name, _)| *name).collect();
        assert_eq!(known, steelyard_model::COUNTER_NAMES);
        assert!(COUNTER_ALIASES.iter().all(|(alias, _)| find_event(alias).is_some()));
    }

    #[test]
    fn aliases_lead_to_their_events() {
        assert_eq!(find_event("cycles"), find_event("cpu-cycles"));
        assert_eq!(find_event("LLC-load-misses"), Some(Event { kind: 3, config: 0x1_0002 }));
        assert_eq!(find_event("nonsense"), None);
        assert!(event_names().contains("`instructions`"));
    }
}

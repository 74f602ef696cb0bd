use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{HostError, HostRoot};

/// What the machine has done since boot, at one instant. Two of them give rates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Activity {
    /// When it was read, `CLOCK_MONOTONIC` [ns]; 0 for a tree that is not the running system.
    pub monotonic_ns: u64,
    /// CPU time by use, of all CPUs.
    pub total: CpuTicks,
    /// The same by CPU.
    pub by_cpu: BTreeMap<u32, CpuTicks>,
    /// Length of one tick of the CPU times [ns].
    pub tick_ns: u64,
    /// Tasks running or waiting for a CPU.
    pub runnable_count: u64,
    /// Load averages over 1, 5 and 15 minutes.
    pub load: [f64; 3],
    /// Pressure stall information by resource (`cpu`, `memory`, `io`); empty where not offered.
    pub pressure: BTreeMap<String, Pressure>,
    /// Pages moved to and from swap.
    pub swap: SwapActivity,
    /// Thermal throttle events of all CPUs; nothing where the host does not count them.
    pub throttle_count: Option<u64>,
}

/// CPU time by use in ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuTicks {
    /// User code, low priorities included.
    pub user: u64,
    /// Kernel code.
    pub system: u64,
    /// Interrupts.
    pub interrupt: u64,
    /// Nothing to do, or waiting for storage.
    pub idle: u64,
    /// Taken by the hypervisor.
    pub steal: u64,
}

/// Pressure of one resource.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Pressure {
    /// Some task waited.
    pub some: PressureLine,
    /// All tasks waited; absent for CPUs on older kernels.
    pub full: Option<PressureLine>,
}

/// One line of a pressure file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct PressureLine {
    /// Share of the last 10 s [percent].
    pub average_10_s_percent: f64,
    /// Share of the last 60 s [percent].
    pub average_60_s_percent: f64,
    /// Waiting time since boot [us].
    pub total_us: u64,
}

/// Pages moved between memory and swap since boot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwapActivity {
    /// Read back.
    pub pages_in: u64,
    /// Written out.
    pub pages_out: u64,
}

/// Reads the machine's activity.
///
/// # Errors
///
/// [`HostError`] when `/proc/stat` is absent or damaged; everything else may be missing.
pub fn read_activity(root: &HostRoot) -> Result<Activity, HostError> {
    let stat = root.read("/proc/stat")?;
    let mut total = None;
    let mut by_cpu = BTreeMap::new();
    for line in stat.lines().filter(|line| line.starts_with("cpu")) {
        let damaged =
            || HostError::content(root.resolve("/proc/stat"), line, "`cpu<N>` and at least 4 counts");
        let (name, counts) = line.split_once(' ').ok_or_else(damaged)?;
        let ticks = parse_ticks(counts).ok_or_else(damaged)?;
        match name.trim_start_matches("cpu") {
            "" => total = Some(ticks),
            number => {
                by_cpu.insert(number.parse().map_err(|_| damaged())?, ticks);
            }
        }
    }
    let total = total.ok_or_else(|| {
        HostError::content(root.resolve("/proc/stat"), &stat, "a line that starts with `cpu `")
    })?;
    let loadavg = root.text("/proc/loadavg").unwrap_or_default();
    Ok(Activity {
        monotonic_ns: if root.is_system() { crate::clock::monotonic_ns() } else { 0 },
        total,
        by_cpu,
        tick_ns: crate::clock::user_tick_ns(),
        runnable_count: parse_runnable(&loadavg),
        load: parse_load(&loadavg),
        pressure: read_pressure(root),
        swap: read_swap(root),
        throttle_count: read_throttle_count(root),
    })
}

pub(crate) fn parse_ticks(text: &str) -> Option<CpuTicks> {
    let counts: Vec<u64> = text.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    // SOURCE: proc_stat(5): user nice system idle iowait irq softirq steal; guest is part of user.
    let at = |index: usize| counts.get(index).copied().unwrap_or(0);
    (counts.len() >= 4).then(|| CpuTicks {
        user: at(0).saturating_add(at(1)),
        system: at(2),
        interrupt: at(5).saturating_add(at(6)),
        idle: at(3).saturating_add(at(4)),
        steal: at(7),
    })
}

/// A finite number from 0; words like `nan` are none.
fn amount(field: &str) -> Option<f64> {
    field.parse().ok().filter(|value: &f64| value.is_finite() && *value >= 0.0)
}

pub(crate) fn parse_load(text: &str) -> [f64; 3] {
    let mut fields = text.split_whitespace().map(|field| amount(field).unwrap_or(0.0));
    std::array::from_fn(|_| fields.next().unwrap_or(0.0))
}

pub(crate) fn parse_runnable(loadavg: &str) -> u64 {
    let field = loadavg.split_whitespace().nth(3).and_then(|field| field.split('/').next());
    field.and_then(|count| count.parse().ok()).unwrap_or(0)
}

fn read_pressure(root: &HostRoot) -> BTreeMap<String, Pressure> {
    ["cpu", "memory", "io"]
        .into_iter()
        .filter_map(|name| {
            let pressure = parse_pressure(&root.text(&format!("/proc/pressure/{name}"))?)?;
            Some((name.to_owned(), pressure))
        })
        .collect()
}

pub(crate) fn parse_pressure(text: &str) -> Option<Pressure> {
    let line = |kind: &str| text.lines().find_map(|line| parse_pressure_line(line.strip_prefix(kind)?));
    Some(Pressure { some: line("some ")?, full: line("full ") })
}

fn parse_pressure_line(text: &str) -> Option<PressureLine> {
    let fields: BTreeMap<&str, &str> =
        text.split_whitespace().filter_map(|field| field.split_once('=')).collect();
    Some(PressureLine {
        average_10_s_percent: amount(fields.get("avg10")?)?,
        average_60_s_percent: amount(fields.get("avg60")?)?,
        total_us: fields.get("total")?.parse().ok()?,
    })
}

fn read_swap(root: &HostRoot) -> SwapActivity {
    let text = root.text("/proc/vmstat").unwrap_or_default();
    let count = |name: &str| {
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
    };
    SwapActivity { pages_in: count("pswpin"), pages_out: count("pswpout") }
}

pub(crate) fn read_throttle_count(root: &HostRoot) -> Option<u64> {
    let folder = "/sys/devices/system/cpu";
    let counts: Vec<u64> = root
        .numbered(folder, "cpu")
        .into_iter()
        .flat_map(|cpu| {
            ["core_throttle_count", "package_throttle_count"]
                .map(|name| root.number(&format!("{folder}/cpu{cpu}/thermal_throttle/{name}")))
        })
        .flatten()
        .collect();
    (!counts.is_empty()).then(|| counts.iter().fold(0u64, |sum, count| sum.saturating_add(*count)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        crate::report::tests::tree(files)
    }

    /// Found by fuzzing.
    #[test]
    fn words_that_parse_as_numbers_are_no_load_and_no_pressure() {
        assert_eq!(parse_load("nan inf -1 1/2 3").map(f64::to_bits), [0.0; 3].map(f64::to_bits));
        let line = "some avg10=NaN avg60=infinity avg300=0.00 total=1";
        assert_eq!(parse_pressure(line), None);
    }

    #[test]
    fn counters_pressure_and_swap_are_read() {
        let folder = tree(&[
            ("proc/stat", "cpu  10 5 7 100 3 1 2 9 0 0\ncpu0 10 5 7 100 3 1 2 9 0 0\nintr 5\n"),
            ("proc/loadavg", "4.05 2.88 1.24 3/113 20637\n"),
            ("proc/pressure/cpu", "some avg10=6.00 avg60=49.86 avg300=35.69 total=167\n"),
            ("proc/vmstat", "pswpin 4\npswpout 6\n"),
            ("sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "3\n"),
        ]);
        let seen = read_activity(&HostRoot::at(folder.path())).unwrap();
        assert_eq!(seen.total, CpuTicks { user: 15, system: 7, interrupt: 3, idle: 103, steal: 9 });
        assert_eq!(seen.by_cpu.len(), 1);
        assert_eq!((seen.runnable_count, seen.load[0].to_string()), (3, "4.05".into()));
        assert_eq!((seen.pressure["cpu"].some.total_us, seen.pressure["cpu"].full), (167, None));
        assert_eq!((seen.swap.pages_in, seen.swap.pages_out, seen.throttle_count), (4, 6, Some(3)));
    }

    #[test]
    fn a_damaged_line_is_an_error_with_the_path() {
        let folder = tree(&[("proc/stat", "cpu  10 x 7 100\n")]);
        let error = read_activity(&HostRoot::at(folder.path())).unwrap_err().to_string();
        assert!(error.contains("proc/stat") && error.contains("10 x 7"), "{error}");
    }

    #[test]
    fn a_file_without_the_total_is_an_error() {
        let folder = tree(&[("proc/stat", "btime 5\n")]);
        assert!(read_activity(&HostRoot::at(folder.path())).is_err());
    }
}

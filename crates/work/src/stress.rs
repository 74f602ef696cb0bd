use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::time::Duration;

use crate::WorkError;
use crate::stop::StopCondition;

/// What a stressor keeps busy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StressKind {
    /// The arithmetic units of one CPU.
    Cpu,
    /// The memory bandwidth one CPU can use.
    Memcpy,
}

impl StressKind {
    /// The stressor of that name.
    ///
    /// # Errors
    ///
    /// [`WorkError::Usage`] with the known names.
    pub fn from_name(name: &str) -> Result<Self, WorkError> {
        match name {
            "cpu" => Ok(Self::Cpu),
            "memcpy" => Ok(Self::Memcpy),
            _ => Err(WorkError::usage(format!("`{name}` is not a stressor; known: `cpu`, `memcpy`"))),
        }
    }
}

/// Loads the machine until the time is over, a signal comes, or the parent is gone.
///
/// `buffer_bytes` is the size of each of the two buffers of `memcpy`; `None` chooses twice the
/// last-level cache, at most 256 MiB and at most 1/32 of the available memory.
///
/// # Errors
///
/// [`WorkError::System`] if the signal handlers cannot be installed.
pub fn stress(kind: StressKind, longest: Duration, buffer_bytes: Option<u64>) -> Result<(), WorkError> {
    let stop = StopCondition::arm(longest)?;
    match kind {
        StressKind::Cpu => compute(&stop),
        StressKind::Memcpy => copy(&stop, buffer_bytes.unwrap_or_else(default_buffer_bytes)),
    }
    Ok(())
}

/// Integer and floating-point arithmetic without memory, about a millisecond between checks.
fn compute(stop: &StopCondition) {
    let (mut word, mut real) = (0x9e37_79b9_7f4a_7c15_u64, 1.000_1_f64);
    while !stop.is_met() {
        for _ in 0..200_000 {
            word ^= word << 13;
            word ^= word >> 7;
            word ^= word << 17;
            real = (real * 0.999_999 + 1e-6).sqrt();
        }
        black_box((word, real));
    }
}

/// Copies forth and back between two buffers in pieces, a check after each piece.
fn copy(stop: &StopCondition, buffer_bytes: u64) {
    const PIECE_BYTES: usize = 1 << 20;
    let size = usize::try_from(buffer_bytes).unwrap_or(usize::MAX);
    let (mut first, mut second) = (vec![0x55_u8; size], vec![0xaa_u8; size]);
    loop {
        for (target, source) in second.chunks_mut(PIECE_BYTES).zip(first.chunks(PIECE_BYTES)) {
            target.copy_from_slice(black_box(source));
            black_box(target);
            if stop.is_met() {
                return;
            }
        }
        std::mem::swap(&mut first, &mut second);
    }
}

fn default_buffer_bytes() -> u64 {
    const SMALLEST: u64 = 16 << 20;
    const LARGEST: u64 = 256 << 20;
    let cache = last_level_cache_bytes(Path::new("/sys/devices/system/cpu/cpu0/cache")).unwrap_or(SMALLEST);
    let memory = available_memory_bytes(Path::new("/proc/meminfo")).unwrap_or(LARGEST);
    (2 * cache).clamp(SMALLEST, LARGEST).min(memory / 32).max(1 << 20)
}

/// Size of the largest cache of the first CPU, from files such as `index3/size` with `32768K`.
fn last_level_cache_bytes(folder: &Path) -> Option<u64> {
    let sizes = fs::read_dir(folder).ok()?.flatten().filter_map(|entry| {
        let text = fs::read_to_string(entry.path().join("size")).ok()?;
        text.trim().strip_suffix('K')?.parse::<u64>().ok()
    });
    sizes.max().map(|kibibytes| kibibytes << 10)
}

fn available_memory_bytes(file: &Path) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kibibytes| kibibytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn both_stressors_end_in_time() {
        for kind in [StressKind::Cpu, StressKind::Memcpy] {
            let start = Instant::now();
            stress(kind, Duration::from_millis(30), Some(4 << 20)).unwrap();
            let took = start.elapsed();
            assert!(took >= Duration::from_millis(30) && took < Duration::from_secs(5), "{kind:?} {took:?}");
        }
    }

    #[test]
    fn an_unknown_stressor_is_named() {
        let error = StressKind::from_name("disk").unwrap_err();
        assert!(error.to_string().contains("`disk`") && error.to_string().contains("`memcpy`"));
    }

    #[test]
    fn host_files_that_are_absent_give_nothing() {
        assert_eq!(last_level_cache_bytes(Path::new("/nonexistent")), None);
        assert_eq!(available_memory_bytes(Path::new("/nonexistent")), None);
    }

    #[test]
    fn the_buffers_of_this_host_are_within_bounds() {
        assert!((1 << 20..=256 << 20).contains(&default_buffer_bytes()));
    }
}

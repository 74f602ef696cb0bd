//! Pages that the host moves between memory and swap space.

use std::fs::File;
use std::os::unix::fs::FileExt;

const BUFFER_BYTES: usize = 16 << 10;

/// Reads `/proc/vmstat`, on a host that swaps.
#[derive(Debug)]
pub(super) struct Swaps(File);

impl Swaps {
    /// `None` on a host without swap space, where nothing is ever swapped.
    pub(super) fn open() -> Option<Self> {
        // The first line is the heading.
        let has_space = std::fs::read_to_string("/proc/swaps").ok()?.lines().count() > 1;
        has_space.then(|| File::open("/proc/vmstat").ok()).flatten().map(Self)
    }

    /// Pages swapped in and out so far, of all programs.
    pub(super) fn pages(&self) -> Option<u64> {
        let mut buffer = vec![0_u8; BUFFER_BYTES];
        let length = self.0.read_at(&mut buffer, 0).ok()?;
        Some(swapped_pages(&String::from_utf8_lossy(&buffer[..length])))
    }
}

fn swapped_pages(text: &str) -> u64 {
    text.lines()
        .filter_map(|line| line.strip_prefix("pswpin ").or_else(|| line.strip_prefix("pswpout ")))
        .filter_map(|number| number.trim().parse().ok())
        .fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_both_directions_are_summed() {
        let text = "pgpgin 9\npswpin 3\npswpout 4\npgfault 8\nzswpin 7\n";
        assert_eq!(swapped_pages(text), 7);
        assert_eq!(swapped_pages(&format!("pswpin {}\npswpout 1\n", u64::MAX)), u64::MAX);
    }
}

/// What a run may use, as far as groups enforce it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GroupLimits {
    /// Peak memory [bytes].
    pub memory_bytes: Option<u64>,
    /// Tasks alive at once.
    pub process_count: Option<u64>,
    /// CPUs, as a list like `0,2`.
    pub cpus: Option<String>,
    /// Memory nodes, as a list like `0`.
    pub memory_nodes: Option<String>,
    /// The largest CPU weight the kernel knows instead of the usual one.
    pub is_maximal_weight: bool,
}

impl GroupLimits {
    /// A list in the format of cpusets.
    #[must_use]
    pub fn list(numbers: &[u32]) -> String {
        numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_comma_separated() {
        assert_eq!(GroupLimits::list(&[0, 2, 11]), "0,2,11");
    }
}

use std::collections::BTreeMap;
use std::io::Read;

use crate::HostRoot;

/// Options the running kernel was built with.
#[derive(Debug, Clone, Default)]
pub struct KernelConfig {
    options: BTreeMap<String, String>,
    source: Option<String>,
}

impl KernelConfig {
    /// Reads `/proc/config.gz`, else the file a distribution installs beside the kernel. Without
    /// any, every option is unknown.
    #[must_use]
    pub fn read(root: &HostRoot) -> Self {
        if let Some(text) = root.bytes("/proc/config.gz").and_then(|bytes| unpack(&bytes)) {
            return Self::parse(&text, "/proc/config.gz");
        }
        let Some(release) = root.text("/proc/sys/kernel/osrelease") else { return Self::default() };
        let places = [format!("/boot/config-{release}"), format!("/lib/modules/{release}/config")];
        places
            .iter()
            .find_map(|place| root.text(place).map(|text| Self::parse(&text, place)))
            .unwrap_or_default()
    }

    pub(crate) fn parse(text: &str, source: &str) -> Self {
        let options = text
            .lines()
            .filter_map(|line| line.strip_prefix("CONFIG_")?.split_once('='))
            .map(|(name, value)| (name.to_owned(), value.trim_matches('"').to_owned()))
            .collect();
        Self { options, source: Some(source.to_owned()) }
    }

    /// Where the options were read, if anywhere.
    #[must_use]
    pub fn source(&self) -> Option<&str> {
        self.source.as_deref()
    }

    /// Value of an option named without `CONFIG_`.
    #[must_use]
    pub fn value(&self, option: &str) -> Option<&str> {
        self.options.get(option).map(String::as_str)
    }

    /// Whether an option is built in or a module; nothing when the options are unknown.
    #[must_use]
    pub fn has(&self, option: &str) -> Option<bool> {
        self.source.as_ref().map(|_| matches!(self.value(option), Some("y" | "m")))
    }
}

pub(crate) fn unpack(bytes: &[u8]) -> Option<String> {
    // A kernel's options have about 0.3 MiB; the cap keeps a damaged file from filling memory.
    let mut text = String::new();
    flate2::read::GzDecoder::new(bytes).take(8 << 20).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn packed_options_are_read() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("proc")).unwrap();
        let file = std::fs::File::create(folder.path().join("proc/config.gz")).unwrap();
        let mut packer = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
        packer.write_all(b"CONFIG_HZ=250\n# CONFIG_KSM is not set\nCONFIG_PSI=y\n").unwrap();
        packer.finish().unwrap();
        let config = KernelConfig::read(&HostRoot::at(folder.path()));
        assert_eq!(config.value("HZ"), Some("250"));
        assert_eq!((config.has("PSI"), config.has("KSM")), (Some(true), Some(false)));
    }

    #[test]
    fn a_damaged_file_leaves_everything_unknown() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("proc")).unwrap();
        std::fs::write(folder.path().join("proc/config.gz"), b"not packed").unwrap();
        assert_eq!(KernelConfig::read(&HostRoot::at(folder.path())).has("PSI"), None);
    }
}

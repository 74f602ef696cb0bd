//! Entrances for the fuzz targets: every parser of text that the kernel or an administrator writes.
//!
//! Compiled by `cargo fuzz` only. Each one panics where a promise about the result is broken.

use std::path::Path;

use crate::cgroup::{file, layout};
use crate::kernel_config::{KernelConfig, unpack};
use crate::{activity, capability, fingerprint, noise, topology};

/// Files of `/proc` and `/sys` outside of control groups.
pub fn host_files(text: &str) {
    let _ = activity::parse_ticks(text);
    assert!(activity::parse_load(text).iter().all(|load| load.is_finite() && *load >= 0.0));
    let _ = activity::parse_runnable(text);
    if let Some(pressure) = activity::parse_pressure(text) {
        for line in std::iter::once(pressure.some).chain(pressure.full) {
            assert!(line.average_10_s_percent.is_finite() && line.average_60_s_percent.is_finite());
        }
    }
    let _ = noise::surroundings::device_interrupts(text);
    let _ = noise::chosen(text);
    let _ = topology::parse_size(text);
    assert!(capability::group::release(text).len() <= 2);
    let _ = capability::privilege::mask(text, "CapEff:");
    let parameters = fingerprint::boot_parameters(text);
    assert!(parameters.iter().all(|parameter| text.contains(parameter.as_str())));
    let _ = fingerprint::cpu_signature(text);
}

/// Files of control groups.
pub fn control_group_files(text: &str) {
    let _ = file::number(text);
    let _ = file::keyed(text, "usage_usec");
    let _ = file::pressure_ns(text);
    let _ = file::io_bytes(text);
    let _ = file::blkio_bytes(text);
    for line in text.lines() {
        let _ = layout::Mount::parse(line);
    }
    for controller in layout::Controller::V1.into_iter().map(Some).chain([None]) {
        let Some(own) = layout::membership(text, controller) else { continue };
        for root in ["/", "/user.slice", own] {
            // A group never leads out of the mounted part.
            let found = layout::relative_group(root, own);
            assert!(found.is_none_or(|group| group.is_relative() && !group.starts_with(Path::new(".."))));
        }
    }
}

/// Options of a kernel, plain or packed.
pub fn kernel_config(bytes: &[u8]) {
    let text = unpack(bytes).unwrap_or_else(|| String::from_utf8_lossy(bytes).into_owned());
    let config = KernelConfig::parse(&text, "/proc/config.gz");
    assert_eq!(config.has("HZ"), Some(matches!(config.value("HZ"), Some("y" | "m"))));
}

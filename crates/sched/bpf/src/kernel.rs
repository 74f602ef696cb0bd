//! Type information of the running kernel.

use libbpf_rs::ReferencesType;
use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{Func, FuncProto};

/// Parameters of a function of the kernel, by its BTF; `None`: it has no such function.
pub(crate) fn count_parameters(name: &str) -> Option<usize> {
    thread_local! {
        static BTF: Option<Btf<'static>> = Btf::from_vmlinux().ok();
    }
    BTF.with(|btf| {
        let function = btf.as_ref()?.type_by_name::<Func<'_>>(name)?;
        let prototype = FuncProto::try_from(function.referenced_type().skip_mods_and_typedefs()).ok()?;
        Some(prototype.iter().count())
    })
}

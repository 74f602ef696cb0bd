//! Type information of the running kernel.

use libbpf_rs::ReferencesType;
use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{Enum, Enum64, Func, FuncProto};

thread_local! {
    static BTF: Option<Btf<'static>> = Btf::from_vmlinux().ok();
}

/// Parameters of a function of the kernel, by its BTF; `None`: it has no such function.
pub(crate) fn count_parameters(name: &str) -> Option<usize> {
    BTF.with(|btf| {
        let function = btf.as_ref()?.type_by_name::<Func<'_>>(name)?;
        let prototype = FuncProto::try_from(function.referenced_type().skip_mods_and_typedefs()).ok()?;
        Some(prototype.iter().count())
    })
}

/// Value of a name in an enumeration of the kernel, by its BTF; `None`: it knows no such name.
pub(crate) fn enumerator(enumeration: &str, name: &str) -> Option<u64> {
    BTF.with(|btf| {
        let btf = btf.as_ref()?;
        if let Some(wide) = btf.type_by_name::<Enum64<'_>>(enumeration) {
            let found = wide.iter().find(|member| member.name.is_some_and(|known| known == name))?;
            return u64::try_from(found.value).ok();
        }
        let narrow = btf.type_by_name::<Enum<'_>>(enumeration)?;
        let found = narrow.iter().find(|member| member.name.is_some_and(|known| known == name))?;
        u64::try_from(found.value).ok()
    })
}

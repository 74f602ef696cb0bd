//! Type information of the running kernel.

use libbpf_rs::ReferencesType;
use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{Enum, Enum64, Func, FuncProto, Struct};

use crate::features::Types;

thread_local! {
    static BTF: Option<Btf<'static>> = Btf::from_vmlinux().ok();
}

/// The running kernel's BTF, which is read once; a kernel without says nothing of anything.
pub(crate) struct RunningKernel;

impl Types for RunningKernel {
    fn parameters(&self, function: &str) -> Option<usize> {
        BTF.with(|btf| {
            let function = btf.as_ref()?.type_by_name::<Func<'_>>(function)?;
            let prototype = FuncProto::try_from(function.referenced_type().skip_mods_and_typedefs()).ok()?;
            Some(prototype.iter().count())
        })
    }

    fn has_member(&self, structure: &str, member: &str) -> bool {
        BTF.with(|btf| {
            let found = btf.as_ref().and_then(|btf| btf.type_by_name::<Struct<'_>>(structure));
            found.is_some_and(|found| found.iter().any(|each| each.name.is_some_and(|known| known == member)))
        })
    }

    fn enumerator(&self, enumeration: &str, name: &str) -> Option<u64> {
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
}

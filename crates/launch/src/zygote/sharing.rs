//! Children that share the zygote's memory until their exec.
//!
//! Such a child costs a fraction of one with a copy: no page tables are copied, no page is copied when
//! it is written to, and nothing is torn down at the exec. Until then the kernel holds the zygote: heap
//! and the thread's variables (`errno` among them) have one user at a time.

use std::io;
use std::os::fd::OwnedFd;
use std::ptr::{self, NonNull};

use super::clone::{CloneArguments, UNSUPPORTED};

const GUARD_BYTES: usize = 64 << 10;
const STACK_BYTES: usize = 512 << 10;

/// What a child begins with: never returns.
pub(super) type Life = extern "C" fn(*const libc::c_void) -> !;

/// Where children have their stack, one at a time. Below it is a guard: an overflow ends the child
/// instead of writing over the zygote.
#[derive(Debug)]
pub(super) struct Stack(NonNull<libc::c_void>);

impl Stack {
    /// Maps it.
    pub(super) fn new() -> io::Result<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK | libc::MAP_NORESERVE;
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
        let address =
            unsafe { libc::mmap(ptr::null_mut(), GUARD_BYTES + STACK_BYTES, libc::PROT_NONE, flags, -1, 0) };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let this = NonNull::new(address).map(Self).ok_or(io::ErrorKind::OutOfMemory)?;
        let usable = address.wrapping_byte_add(GUARD_BYTES);
        // SAFETY: a part of the mapping that was just made and that nobody uses yet.
        if unsafe { libc::mprotect(usable, STACK_BYTES, libc::PROT_READ | libc::PROT_WRITE) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(this)
    }

    /// Lowest usable address and size, as `clone3` takes them.
    fn place(&self) -> (u64, u64) {
        (self.0.as_ptr().wrapping_byte_add(GUARD_BYTES) as u64, STACK_BYTES as u64)
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this size; nobody executes on it once its owner is gone.
        unsafe { libc::munmap(self.0.as_ptr(), GUARD_BYTES + STACK_BYTES) };
    }
}

/// Clones a child of the caller's parent that executes `life` and shares the caller's memory. Comes back
/// when the child has executed a program or is gone. The kernel writes the child's id to `pid` before the
/// child runs. The error `Unsupported` sends the caller to another way.
///
/// # Safety
///
/// The caller has one thread. `life` takes `argument`, and what it changes of the caller's memory is what
/// the caller expects.
pub(super) unsafe fn clone_sharing(
    leaf: Option<&OwnedFd>,
    pid: *mut i32,
    stack: &Stack,
    (life, argument): (Life, *const libc::c_void),
) -> io::Result<()> {
    let mut arguments = CloneArguments::of_child(leaf, pid);
    // KERNEL: without CLONE_VFORK both would also share the mark of `VictimMark`.
    arguments.flags |= u64::from((libc::CLONE_VM | libc::CLONE_VFORK).cast_unsigned());
    (arguments.stack, arguments.stack_size) = stack.place();
    // SAFETY: by the contract above; the stack is used by one child at a time.
    let result = unsafe { raw::clone3(&arguments, life, argument) };
    match i32::try_from(result) {
        Ok(0..) => Ok(()),
        Ok(error) if UNSUPPORTED.contains(&-error) => Err(io::ErrorKind::Unsupported.into()),
        Ok(error) => Err(io::Error::from_raw_os_error(-error)),
        Err(_) => Err(io::ErrorKind::InvalidData.into()),
    }
}

#[cfg(target_arch = "x86_64")]
mod raw {
    use std::arch::asm;
    use std::ptr;

    use super::{CloneArguments, Life};

    /// # Safety
    ///
    /// As of [`clone_sharing`](super::clone_sharing).
    pub(super) unsafe fn clone3(
        arguments: &CloneArguments,
        life: Life,
        argument: *const libc::c_void,
    ) -> i64 {
        let result: i64;
        // SAFETY: the arguments are valid. The child begins behind the call with its own stack and never
        // comes back from `life`; the kernel preserves the caller's registers but three.
        unsafe {
            asm!(
                "syscall",
                "test rax, rax",
                "jnz 2f",
                "xor ebp, ebp",
                "mov rdi, r12",
                "call r13",
                "ud2",
                "2:",
                inlateout("rax") libc::SYS_clone3 => result,
                in("rdi") ptr::from_ref(arguments),
                in("rsi") size_of::<CloneArguments>(),
                in("r12") argument,
                in("r13") life,
                lateout("rcx") _,
                lateout("r11") _,
            );
        }
        result
    }
}

#[cfg(target_arch = "aarch64")]
mod raw {
    use std::arch::asm;
    use std::ptr;

    use super::{CloneArguments, Life};

    /// # Safety
    ///
    /// As of [`clone_sharing`](super::clone_sharing).
    pub(super) unsafe fn clone3(
        arguments: &CloneArguments,
        life: Life,
        argument: *const libc::c_void,
    ) -> i64 {
        let result: i64;
        // SAFETY: the arguments are valid. The child begins behind the call with its own stack and never
        // comes back from `life`; the kernel preserves the caller's registers.
        unsafe {
            asm!(
                "svc #0",
                "cbnz x0, 2f",
                "mov x29, #0",
                "mov x0, {argument}",
                "blr {life}",
                "brk #0",
                "2:",
                in("x8") libc::SYS_clone3,
                inlateout("x0") ptr::from_ref(arguments) => result,
                in("x1") size_of::<CloneArguments>(),
                argument = in(reg) argument,
                life = in(reg) life,
            );
        }
        result
    }
}

/// Other processors: children get a copy.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod raw {
    use super::{CloneArguments, Life};

    pub(super) unsafe fn clone3(_: &CloneArguments, _: Life, _: *const libc::c_void) -> i64 {
        -i64::from(libc::ENOSYS)
    }
}

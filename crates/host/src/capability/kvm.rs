use super::statement::Capability;

/// Answers whether the virtualisation device runs guests at the processor's speed.
///
/// The device alone proves nothing: nested in some hypervisors it opens, creates machines and then
/// emulates every guest instruction, a thousand times too slow to boot anything.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn probe() -> Capability {
    let look = look();
    match std::fs::OpenOptions::new().read(true).write(true).open("/dev/kvm") {
        Ok(_) => look.present("the device opens; guest speed is not tested on this architecture"),
        Err(error) => look.absent(error.to_string(), None),
    }
}

fn look() -> Capability {
    Capability::new("kvm", "virtual machines at full speed", "a guest of 40000 instructions on /dev/kvm")
}

#[cfg(target_arch = "x86_64")]
pub(super) fn probe() -> Capability {
    use guest::{INSTRUCTIONS, Stage};

    let answer = match guest::execute() {
        Ok(answer) => answer,
        Err(error) => return look().absent(format!("no child could be made: {}", error.desc()), None),
    };
    let reason = nix::errno::Errno::from_raw(answer.error).desc();
    match answer.stage {
        Stage::Opening if answer.error == libc::ENOENT => {
            look().absent("there is no /dev/kvm", Some("modprobe kvm_intel || modprobe kvm_amd"))
        }
        Stage::Opening => look().absent(format!("/dev/kvm: {reason}"), Some("usermod -aG kvm $USER")),
        Stage::Creating => look().absent(format!("present, but no machine can be created: {reason}"), None),
        Stage::Executing => {
            look().absent("present, but a guest never finishes: machines need software emulation here", None)
        }
        Stage::Finished if answer.guest_ns > INSTRUCTIONS * guest::EMULATED_NS => {
            let each = answer.guest_ns / INSTRUCTIONS;
            let reason = format!(
                "present, but emulates each instruction in {each} ns: machines are as slow as without it"
            );
            look().absent(reason, None)
        }
        Stage::Finished => look().present("a guest ran at the processor's speed"),
    }
}

#[cfg(target_arch = "x86_64")]
mod guest {
    use nix::errno::Errno;
    use nix::sys::wait::waitpid;
    use nix::unistd::{ForkResult, fork};

    /// Instructions the guest executes: two per turn of its loop.
    pub(super) const INSTRUCTIONS: u64 = 2 * 20_000;
    /// A real instruction takes below 1 ns; emulation takes 500 or more. Anything between is noise.
    pub(super) const EMULATED_NS: u64 = 50;
    /// `mov cx, 20000; again: dec cx; jnz again; hlt` in real mode.
    const CODE: [u8; 7] = [0xb9, 0x20, 0x4e, 0x49, 0x75, 0xfd, 0xf4];
    const PAGE: usize = 4096;
    const TIMEOUT_S: u32 = 2;

    // SOURCE: include/uapi/linux/kvm.h.
    const CREATE_VM: libc::c_ulong = 0xae01;
    const VCPU_MMAP_SIZE: libc::c_ulong = 0xae04;
    const SET_MEMORY_REGION: libc::c_ulong = 0x4020_ae46;
    const CREATE_VCPU: libc::c_ulong = 0xae41;
    const RUN: libc::c_ulong = 0xae80;
    const SET_REGISTERS: libc::c_ulong = 0x4090_ae82;
    const GET_SPECIAL_REGISTERS: libc::c_ulong = 0x8138_ae83;
    const SET_SPECIAL_REGISTERS: libc::c_ulong = 0x4138_ae84;
    const SPECIAL_REGISTERS_BYTES: usize = 0x138;
    const EXIT_HALT: u32 = 5;

    /// How far a guest came.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(super) enum Stage {
        Opening,
        Creating,
        Executing,
        Finished,
    }

    #[derive(Debug, Clone, Copy)]
    pub(super) struct Answer {
        pub(super) stage: Stage,
        pub(super) error: i32,
        pub(super) guest_ns: u64,
    }

    #[repr(C)]
    struct MemoryRegion {
        slot: u32,
        flags: u32,
        guest_address: u64,
        bytes: u64,
        host_address: u64,
    }

    /// Executes the guest in a child, which a timer ends: a broken hypervisor cannot hold us up.
    pub(super) fn execute() -> Result<Answer, Errno> {
        let (answer, question) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
        // SAFETY: the child makes system calls only, without allocating, until it ends.
        match unsafe { fork() }? {
            ForkResult::Child => {
                // SAFETY: the default action of the signal ends the child.
                unsafe { libc::signal(libc::SIGALRM, libc::SIG_DFL) };
                nix::unistd::alarm::set(TIMEOUT_S);
                let mut report = |stage: Stage, value: u64| {
                    let mut message = [0; 9];
                    message[0] = stage as u8;
                    message[1..].copy_from_slice(&value.to_ne_bytes());
                    let _ = nix::unistd::write(&question, &message);
                };
                if let Err((stage, error)) = boot(&mut report) {
                    report(stage, u64::try_from(error as i32).unwrap_or(0));
                }
                // SAFETY: ends the child without running anything of the parent's.
                unsafe { libc::_exit(0) }
            }
            ForkResult::Parent { child } => {
                drop(question);
                let mut last = Answer { stage: Stage::Opening, error: libc::EIO, guest_ns: 0 };
                let mut message = [0; 9];
                while nix::unistd::read(&answer, &mut message) == Ok(message.len()) {
                    last = decode(message);
                }
                while waitpid(child, None) == Err(Errno::EINTR) {}
                Ok(last)
            }
        }
    }

    fn decode(message: [u8; 9]) -> Answer {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&message[1..]);
        let value = u64::from_ne_bytes(bytes);
        let stage = match message[0] {
            0 => Stage::Opening,
            1 => Stage::Creating,
            2 => Stage::Executing,
            _ => Stage::Finished,
        };
        let finished = stage == Stage::Finished;
        Answer {
            stage,
            error: if finished { 0 } else { i32::try_from(value).unwrap_or(0) },
            guest_ns: if finished { value } else { 0 },
        }
    }

    fn boot(report: &mut impl FnMut(Stage, u64)) -> Result<(), (Stage, Errno)> {
        // SAFETY: a constant NUL-terminated path.
        let device = unsafe { libc::open(c"/dev/kvm".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) };
        let device = Errno::result(device).map_err(|error| (Stage::Opening, error))?;
        let processor = create(device).map_err(|error| (Stage::Creating, error))?;
        report(Stage::Executing, 0);
        let begin = crate::clock::monotonic_ns();
        // SAFETY: a virtual processor whose memory and registers are set up.
        Errno::result(unsafe { libc::ioctl(processor.descriptor, RUN, 0) })
            .map_err(|error| (Stage::Executing, error))?;
        let guest_ns = crate::clock::monotonic_ns() - begin;
        let words = processor.shared.cast::<u32>();
        // SAFETY: the mapping is a page at least. SOURCE: kvm_run is 8 bytes of flags, then the reason.
        let reason = unsafe { words.add(2) };
        // SAFETY: as above; the kernel writes only while the processor is executing.
        let reason = unsafe { reason.read_volatile() };
        if reason != EXIT_HALT {
            return Err((Stage::Executing, Errno::EIO));
        }
        report(Stage::Finished, guest_ns);
        Ok(())
    }

    struct Processor {
        descriptor: i32,
        shared: *mut libc::c_void,
    }

    fn create(device: i32) -> Result<Processor, Errno> {
        // SAFETY: takes no pointer.
        let machine = Errno::result(unsafe { libc::ioctl(device, CREATE_VM, 0) })?;
        let memory = map(PAGE, libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1)?;
        // SAFETY: the mapping is larger than the code and written here only.
        unsafe { std::ptr::copy_nonoverlapping(CODE.as_ptr(), memory.cast::<u8>(), CODE.len()) };
        let region = MemoryRegion {
            slot: 0,
            flags: 0,
            guest_address: PAGE as u64,
            bytes: PAGE as u64,
            host_address: memory as u64,
        };
        // SAFETY: the structure outlives the call and has the documented layout.
        Errno::result(unsafe { libc::ioctl(machine, SET_MEMORY_REGION, &raw const region) })?;
        // SAFETY: takes no pointer.
        let descriptor = Errno::result(unsafe { libc::ioctl(machine, CREATE_VCPU, 0) })?;
        // SAFETY: takes no pointer.
        let bytes = Errno::result(unsafe { libc::ioctl(device, VCPU_MMAP_SIZE, 0) })?;
        let bytes = usize::try_from(bytes).map_err(|_| Errno::EINVAL)?;
        let shared = map(bytes, libc::MAP_SHARED, descriptor)?;
        set_registers(descriptor)?;
        Ok(Processor { descriptor, shared })
    }

    fn set_registers(descriptor: i32) -> Result<(), Errno> {
        let mut special = [0u8; SPECIAL_REGISTERS_BYTES];
        // SAFETY: the buffer has the size the request's number carries.
        Errno::result(unsafe { libc::ioctl(descriptor, GET_SPECIAL_REGISTERS, special.as_mut_ptr()) })?;
        // SOURCE: kvm_sregs starts with the code segment: base (8 bytes), limit (4), selector (2).
        special[..8].fill(0);
        special[12..14].fill(0);
        // SAFETY: as above.
        Errno::result(unsafe { libc::ioctl(descriptor, SET_SPECIAL_REGISTERS, special.as_ptr()) })?;
        // SOURCE: kvm_regs is 16 general registers, then rip, then rflags, whose bit 1 is always set.
        let mut general = [0u64; 18];
        general[16] = PAGE as u64;
        general[17] = 2;
        // SAFETY: the buffer has the size the request's number carries.
        Errno::result(unsafe { libc::ioctl(descriptor, SET_REGISTERS, general.as_ptr()) }).map(drop)
    }

    fn map(bytes: usize, flags: i32, descriptor: i32) -> Result<*mut libc::c_void, Errno> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a fresh mapping at a place the kernel chooses.
        let place = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, descriptor, 0) };
        if place == libc::MAP_FAILED { Err(Errno::last()) } else { Ok(place) }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_answer_comes_in_bounded_time_and_has_a_reason() {
        let begin = std::time::Instant::now();
        assert!(!super::probe().reason.is_empty());
        assert!(begin.elapsed() < std::time::Duration::from_secs(4));
    }
}

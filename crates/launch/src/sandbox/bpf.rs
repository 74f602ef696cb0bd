//! Classic BPF, as far as a system call filter needs it.

/// One instruction, as the kernel takes it.
pub(super) type Instruction = libc::sock_filter;

// SOURCE: linux/bpf_common.h.
pub(super) const LOAD_WORD: u16 = 0x20;
pub(super) const AND: u16 = 0x54;
pub(super) const JUMP_EQUAL: u16 = 0x15;
pub(super) const JUMP_GREATER_OR_EQUAL: u16 = 0x35;
pub(super) const RETURN: u16 = 0x06;

// Offsets in `struct seccomp_data`. SOURCE: linux/seccomp.h.
pub(super) const NUMBER: u32 = 0;
pub(super) const ARCHITECTURE: u32 = 4;
const ARGUMENTS: u32 = 16;
const ARGUMENT_BYTES: u32 = 8;

/// Of the lower half of an argument.
pub(super) const fn argument_offset(argument: u8) -> u32 {
    const LOWER_HALF: u32 = if cfg!(target_endian = "little") { 0 } else { 4 };
    ARGUMENTS + ARGUMENT_BYTES * argument as u32 + LOWER_HALF
}

pub(super) const fn instruction(code: u16, jt: u8, jf: u8, k: u32) -> Instruction {
    Instruction { code, jt, jf, k }
}

/// What a program returns, and in how many steps; `None` when it ends without a return.
#[cfg(any(test, fuzzing))]
pub(super) fn execute(program: &[Instruction], load: impl Fn(u32) -> u32) -> (Option<u32>, usize) {
    let (mut at, mut word, mut steps) = (0, 0, 0);
    while let Some(step) = program.get(at) {
        steps += 1;
        at += 1;
        match step.code {
            LOAD_WORD => word = load(step.k),
            AND => word &= step.k,
            JUMP_EQUAL => at += usize::from(if word == step.k { step.jt } else { step.jf }),
            JUMP_GREATER_OR_EQUAL => at += usize::from(if word >= step.k { step.jt } else { step.jf }),
            _ => return (Some(step.k), steps),
        }
    }
    (None, steps)
}

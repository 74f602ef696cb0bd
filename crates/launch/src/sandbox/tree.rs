//! A search tree over system call numbers in classic BPF.

use std::collections::BTreeMap;

use super::bpf::{
    ARCHITECTURE, Instruction, JUMP_EQUAL, JUMP_GREATER_OR_EQUAL, LOAD_WORD, NUMBER, RETURN, instruction,
};
use super::error::SandboxError;
use super::rule::Rule;

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Allow,
    /// It fails with this error number.
    Refuse(i32),
    /// The program ends.
    Kill,
    /// The rule of this index looks at its arguments.
    Inspect(usize),
}

// SOURCE: linux/audit.h.
#[cfg(target_arch = "x86_64")]
pub(super) const OWN_ARCHITECTURE: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
pub(super) const OWN_ARCHITECTURE: u32 = 0xC000_00B7;

/// Calls of the x32 table have this bit: other numbers for the same calls, past every rule. No
/// other table has numbers as high; negative ones are no call anywhere.
const X32: u32 = 0x4000_0000;
const NEGATIVE: u32 = 0x8000_0000;

/// A program that gives each call its answer; numbers not named are allowed, foreign tables end
/// the program.
pub(super) fn decide(
    answers: &BTreeMap<u32, Answer>,
    rules: &[Rule],
) -> Result<Vec<Instruction>, SandboxError> {
    let program = vec![
        instruction(LOAD_WORD, 0, 0, ARCHITECTURE),
        instruction(JUMP_EQUAL, 1, 0, OWN_ARCHITECTURE),
        instruction(RETURN, 0, 0, libc::SECCOMP_RET_KILL_PROCESS),
        instruction(LOAD_WORD, 0, 0, NUMBER),
    ];
    let mut tree = Tree { program, open: Vec::new() };
    tree.append(&ranges(answers))?;
    tree.close(rules)
}

/// First number and answer of each range, without gaps, ascending.
fn ranges(answers: &BTreeMap<u32, Answer>) -> Vec<(u32, Answer)> {
    let mut ranges: Vec<(u32, Answer)> = vec![(0, Answer::Allow)];
    let mut begin = |first: u32, answer: Answer| match ranges.last_mut() {
        Some((_, last)) if *last == answer => {}
        Some((start, last)) if *start == first => *last = answer,
        _ => ranges.push((first, answer)),
    };
    let mut next = 0;
    for (number, answer) in answers {
        if *number > next {
            begin(next, Answer::Allow);
        }
        begin(*number, *answer);
        next = number + 1;
    }
    begin(next, Answer::Allow);
    begin(X32, Answer::Kill);
    begin(NEGATIVE, Answer::Allow);
    ranges
}

/// A tree whose jumps to answers are still open: each answer is written once, at the end.
struct Tree {
    program: Vec<Instruction>,
    open: Vec<(usize, Side, Answer)>,
}

#[derive(Clone, Copy)]
enum Side {
    /// The number is in an upper range.
    True,
    /// The number is in a lower range.
    False,
}

impl Tree {
    /// One comparison for each boundary between two of the `ranges`, of which there are two or more.
    fn append(&mut self, ranges: &[(u32, Answer)]) -> Result<(), SandboxError> {
        let (lower, upper) = ranges.split_at(ranges.len() / 2);
        let branch = self.program.len();
        self.program.push(instruction(JUMP_GREATER_OR_EQUAL, 0, 0, upper[0].0));
        self.append_side(branch, Side::False, lower)?;
        self.append_side(branch, Side::True, upper)
    }

    fn append_side(
        &mut self,
        branch: usize,
        side: Side,
        ranges: &[(u32, Answer)],
    ) -> Result<(), SandboxError> {
        if let [(_, answer)] = ranges {
            self.open.push((branch, side, *answer));
            return Ok(());
        }
        self.join(branch, side)?;
        self.append(ranges)
    }

    /// Lets a side of a branch go on at the end of the program.
    fn join(&mut self, branch: usize, side: Side) -> Result<(), SandboxError> {
        let distance = u8::try_from(self.program.len() - branch - 1)
            .map_err(|_| SandboxError::Filter { reason: "too many ranges of calls".into() })?;
        match side {
            Side::True => self.program[branch].jt = distance,
            Side::False => self.program[branch].jf = distance,
        }
        Ok(())
    }

    /// Writes the answers, each once.
    fn close(mut self, rules: &[Rule]) -> Result<Vec<Instruction>, SandboxError> {
        let mut answers: Vec<Answer> = Vec::new();
        for (_, _, answer) in &self.open {
            if !answers.contains(answer) {
                answers.push(*answer);
            }
        }
        // The short ones first: their branches reach them all.
        answers.sort_by_key(|answer| matches!(answer, Answer::Inspect(_)));
        for answer in answers {
            for (branch, side, wanted) in std::mem::take(&mut self.open) {
                if wanted == answer {
                    self.join(branch, side)?;
                } else {
                    self.open.push((branch, side, wanted));
                }
            }
            self.program.extend(leaf(answer, rules)?);
        }
        Ok(self.program)
    }
}

fn leaf(answer: Answer, rules: &[Rule]) -> Result<Vec<Instruction>, SandboxError> {
    let value = match answer {
        Answer::Allow => libc::SECCOMP_RET_ALLOW,
        Answer::Refuse(errno) => libc::SECCOMP_RET_ERRNO | errno.unsigned_abs(),
        Answer::Kill => libc::SECCOMP_RET_KILL_PROCESS,
        Answer::Inspect(index) => return rules.get(index).unwrap_or(&Rule::Refuse).compile(),
    };
    Ok(vec![instruction(RETURN, 0, 0, value)])
}

#[cfg(test)]
mod tests {
    use super::super::bpf::execute;
    use super::super::rule::Test;
    use super::*;

    /// What a program answers, and in how many steps.
    fn answer(program: &[Instruction], architecture: u32, number: u32) -> (Option<u32>, usize) {
        execute(program, |offset| match offset {
            NUMBER => number,
            ARCHITECTURE => architecture,
            _ => 7,
        })
    }

    #[test]
    fn every_number_gets_its_answer_in_few_steps() {
        let refused = |value| Test::of(1).case([value], Rule::Refuse).otherwise(Rule::Allow);
        let rules = [refused(7), refused(8)];
        let answers: BTreeMap<u32, Answer> = (0..400)
            .filter(|number| number % 5 == 2 || number % 7 < 2)
            .map(|number| {
                let index = usize::from(number % 2 == 0);
                (number, if number % 30 == 0 { Answer::Inspect(index) } else { Answer::Refuse(1) })
            })
            .collect();
        let program = decide(&answers, &rules).unwrap();
        for number in (0..500).chain([X32 - 1, X32, u32::MAX]) {
            let expected = match answers.get(&number) {
                Some(Answer::Inspect(0) | Answer::Refuse(_)) => libc::SECCOMP_RET_ERRNO | 1,
                None if (X32..NEGATIVE).contains(&number) => libc::SECCOMP_RET_KILL_PROCESS,
                _ => libc::SECCOMP_RET_ALLOW,
            };
            let (found, steps) = answer(&program, OWN_ARCHITECTURE, number);
            assert_eq!(found, Some(expected), "call {number}");
            assert!(steps < 18, "call {number}: {steps} steps");
        }
        assert_eq!(answer(&program, 3, 1).0, Some(libc::SECCOMP_RET_KILL_PROCESS));
    }
}

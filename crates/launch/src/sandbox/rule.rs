//! What a system call filter does by the arguments of a call.

use super::bpf::{AND, Instruction, JUMP_EQUAL, LOAD_WORD, RETURN, argument_offset, instruction};
use super::error::SandboxError;

/// Allow, refuse, or look at an argument.
#[derive(Debug, Clone)]
pub(super) enum Rule {
    Allow,
    Refuse,
    Test(Box<Test>),
}

/// A rule by the value of one argument, of which the kernel reads 32 bits in all calls that have rules.
#[derive(Debug, Clone)]
pub(super) struct Test {
    argument: u8,
    mask: Option<u32>,
    cases: Vec<(Vec<u32>, Rule)>,
    otherwise: Rule,
}

impl Test {
    /// By the argument of this number, from 0.
    pub(super) fn of(argument: u8) -> Self {
        Self { argument, mask: None, cases: Vec::new(), otherwise: Rule::Refuse }
    }

    /// Only these bits count.
    pub(super) fn masked(mut self, mask: u32) -> Self {
        self.mask = Some(mask);
        self
    }

    /// What happens with any of these values.
    pub(super) fn case(mut self, values: impl Into<Vec<u32>>, rule: Rule) -> Self {
        self.cases.push((values.into(), rule));
        self
    }

    /// What happens with all others.
    pub(super) fn otherwise(mut self, rule: Rule) -> Rule {
        self.otherwise = rule;
        Rule::Test(Box::new(self))
    }
}

impl Rule {
    /// Instructions that end in a return on every way.
    pub(super) fn compile(&self) -> Result<Vec<Instruction>, SandboxError> {
        let test = match self {
            Self::Allow => return Ok(vec![instruction(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW)]),
            Self::Refuse => {
                let refusal = libc::SECCOMP_RET_ERRNO | libc::EPERM.unsigned_abs();
                return Ok(vec![instruction(RETURN, 0, 0, refusal)]);
            }
            Self::Test(test) => test,
        };
        let mut program = vec![instruction(LOAD_WORD, 0, 0, argument_offset(test.argument))];
        program.extend(test.mask.map(|mask| instruction(AND, 0, 0, mask)));
        // A case without values is never met; its body would answer what comes after it.
        for (values, rule) in test.cases.iter().filter(|(values, _)| !values.is_empty()) {
            let body = rule.compile()?;
            for (index, value) in values.iter().enumerate() {
                let further = values.len() - 1 - index;
                let is_last = further == 0;
                let past = distance(if is_last { body.len() } else { 0 })?;
                program.push(instruction(JUMP_EQUAL, distance(further)?, past, *value));
            }
            program.extend(body);
        }
        program.extend(test.otherwise.compile()?);
        Ok(program)
    }
}

fn distance(instructions: usize) -> Result<u8, SandboxError> {
    u8::try_from(instructions).map_err(|_| SandboxError::Filter { reason: "a rule is too long".into() })
}

/// What a rule answers for the first three arguments.
#[cfg(test)]
pub(super) fn answer(rule: &Rule, arguments: [u32; 3]) -> u32 {
    let program = rule.compile().unwrap();
    let word = |offset: u32| {
        let index = (0..3).find(|index| argument_offset(*index) == offset).unwrap();
        arguments[usize::from(index)]
    };
    super::bpf::execute(&program, word).0.unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_told_apart_by_their_bits() {
        let inner = Test::of(1).case([7], Rule::Allow).otherwise(Rule::Refuse);
        let rule =
            Test::of(0).masked(0xF).case([1, 2, 3], Rule::Allow).case([4, 5], inner).otherwise(Rule::Refuse);
        let allowed = |first, second| answer(&rule, [first, second, 0]) == libc::SECCOMP_RET_ALLOW;
        for first in 0..64 {
            for second in [0, 7] {
                let expected = match first & 0xF {
                    1..=3 => true,
                    4 | 5 => second == 7,
                    _ => false,
                };
                assert_eq!(allowed(first, second), expected, "{first} {second}");
            }
        }
    }

    /// Found by fuzzing: its answer was given to all values.
    #[test]
    fn a_case_without_values_is_never_met() {
        let rule = Test::of(0).case([], Rule::Allow).case([3], Rule::Allow).otherwise(Rule::Refuse);
        assert_eq!(answer(&rule, [3, 0, 0]), libc::SECCOMP_RET_ALLOW);
        assert_ne!(answer(&rule, [4, 0, 0]), libc::SECCOMP_RET_ALLOW);
    }

    #[test]
    fn a_test_without_cases_is_its_otherwise() {
        let rule = Test::of(2).otherwise(Rule::Allow);
        assert_eq!(answer(&rule, [0, 0, 9]), libc::SECCOMP_RET_ALLOW);
    }
}

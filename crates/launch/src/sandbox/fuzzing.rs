//! An entrance for the fuzz target of the system call filter: any rules are compiled to a program that says what they say.
//!
//! Compiled by `cargo fuzz` only.

use std::collections::BTreeMap;

use super::bpf::{ARCHITECTURE, NUMBER, argument_offset, execute};
use super::rule::{Rule, Test};
use super::tree::{Answer, OWN_ARCHITECTURE, decide};

/// A rule, to be compiled and to be followed step by step.
#[derive(Debug, Clone)]
pub enum Sketch {
    /// The call is made.
    Allow,
    /// It fails.
    Refuse,
    /// It depends on an argument.
    Test {
        /// Its number, from 0; the kernel passes six.
        argument: u8,
        /// The bits that count.
        mask: Option<u32>,
        /// Values, and what happens with them; the first that fits counts.
        cases: Vec<(Vec<u32>, Sketch)>,
        /// What happens with all others.
        otherwise: Box<Sketch>,
    },
}

impl Sketch {
    fn rule(&self) -> Rule {
        match self {
            Self::Allow => Rule::Allow,
            Self::Refuse => Rule::Refuse,
            Self::Test { argument, mask, cases, otherwise } => {
                let mut test = Test::of(*argument % 6);
                if let Some(mask) = mask {
                    test = test.masked(*mask);
                }
                for (values, sketch) in cases {
                    test = test.case(values.clone(), sketch.rule());
                }
                test.otherwise(otherwise.rule())
            }
        }
    }

    fn allows(&self, arguments: [u32; 6]) -> bool {
        match self {
            Self::Allow => true,
            Self::Refuse => false,
            Self::Test { argument, mask, cases, otherwise } => {
                let value = arguments[usize::from(*argument % 6)] & mask.unwrap_or(u32::MAX);
                let fitting = cases.iter().find(|(values, _)| values.contains(&value));
                fitting.map_or(otherwise.as_ref(), |(_, sketch)| sketch).allows(arguments)
            }
        }
    }
}

/// Compiles a filter and asks it about calls; a filter that is too long is refused, never wrong.
///
/// `calls` are numbers with the rule that each has; without one (an index past the end) a call is refused.
pub fn filter(calls: &[(u16, u8)], sketches: &[Sketch], asked: &[(u16, [u32; 6])]) {
    let answers: BTreeMap<u32, Answer> =
        calls.iter().map(|&(call, rule)| (u32::from(call), Answer::Inspect(usize::from(rule)))).collect();
    let rules: Vec<Rule> = sketches.iter().map(Sketch::rule).collect();
    let Ok(program) = decide(&answers, &rules) else { return };
    let known = calls.iter().map(|&(call, _)| (call, [0; 6]));
    for (call, arguments) in known.chain(asked.iter().copied()) {
        let load = |offset: u32| match offset {
            NUMBER => u32::from(call),
            ARCHITECTURE => OWN_ARCHITECTURE,
            _ => (0..6)
                .find(|&each| argument_offset(each) == offset)
                .map_or(0, |at| arguments[usize::from(at)]),
        };
        let (found, steps) = execute(&program, load);
        let expected = match answers.get(&u32::from(call)) {
            Some(Answer::Inspect(index)) => {
                sketches.get(*index).is_some_and(|sketch| sketch.allows(arguments))
            }
            _ => true,
        };
        let refusal = libc::SECCOMP_RET_ERRNO | libc::EPERM.unsigned_abs();
        assert_eq!(found, Some(if expected { libc::SECCOMP_RET_ALLOW } else { refusal }), "call {call}");
        assert!(steps <= program.len());
    }
}

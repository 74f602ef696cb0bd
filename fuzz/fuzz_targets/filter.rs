//! The system call filter, compiled from any rules.
#![no_main]

use arbitrary::{Arbitrary, Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use steelyard_launch::sandbox::fuzzing::{Sketch, filter};

#[derive(Debug, Arbitrary)]
struct Input {
    calls: Vec<(u16, u8)>,
    rules: Vec<Rule>,
    asked: Vec<(u16, [u32; 6])>,
}

#[derive(Debug)]
struct Rule(Sketch);

impl<'a> Arbitrary<'a> for Rule {
    fn arbitrary(input: &mut Unstructured<'a>) -> Result<Self> {
        sketch(input, 4).map(Self)
    }
}

fn sketch(input: &mut Unstructured<'_>, depth: usize) -> Result<Sketch> {
    match input.int_in_range(0..=if depth == 0 { 1 } else { 3_u8 })? {
        0 => Ok(Sketch::Allow),
        1 => Ok(Sketch::Refuse),
        _ => {
            let (argument, mask) = (input.arbitrary()?, input.arbitrary()?);
            let mut cases = Vec::new();
            for _ in 0..input.int_in_range(0..=3)? {
                cases.push((input.arbitrary::<Vec<u32>>()?, sketch(input, depth - 1)?));
            }
            let otherwise = Box::new(sketch(input, depth - 1)?);
            Ok(Sketch::Test { argument, mask, cases, otherwise })
        }
    }
}

fuzz_target!(|input: Input| {
    let rules: Vec<Sketch> = input.rules.into_iter().map(|rule| rule.0).collect();
    filter(&input.calls, &rules, &input.asked);
});

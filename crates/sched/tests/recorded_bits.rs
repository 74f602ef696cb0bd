//! The same seed gives the same bits on every machine: digests that one machine recorded.

#![allow(clippy::expect_used, reason = "a test may panic")]

use steelyard_sched::{Config, Policy, Simulation};

/// SOURCE: FNV-1a with 64 bits (Fowler, Noll, Vo).
fn digest(words: impl Iterator<Item = u64>) -> u64 {
    words
        .flat_map(u64::to_le_bytes)
        .fold(0xCBF2_9CE4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3))
}

fn bits_of(policy: Policy, is_poisson: bool) -> u64 {
    let mut config = Config { policy, cores: 6, cache_cores: 4, ..Config::default() };
    config.service.rate_per_s *= 1.5;
    config.service.threads = 24;
    config.service.is_poisson = is_poisson;
    config.service.long_share = 0.02;
    config.service.long_factor = 10.0;
    config.service.rate_per_s /= 1.18;
    config.phases.client_end_ns = 32_000_000_000;
    let mut simulation = Simulation::new(config).expect("within the ranges");
    while simulation.advance(1 << 16) {}
    let requests = simulation.requests().iter().flat_map(|each| [each.started_ns, each.finished_ns]);
    digest(requests.chain(simulation.iterations().iter().map(|each| each.end_ns)))
}

#[test]
fn recorded_digests_come_out_again() {
    let found: Vec<(Policy, bool, u64)> =
        [Policy::Nice, Policy::Weights, Policy::Idle, Policy::CpuIdle, Policy::Be, Policy::Fifo]
            .into_iter()
            .flat_map(|policy| [(policy, false), (policy, true)])
            .map(|(policy, is_poisson)| (policy, is_poisson, bits_of(policy, is_poisson)))
            .collect();
    assert_eq!(found, RECORDED);
}

const RECORDED: [(Policy, bool, u64); 12] = [
    (Policy::Nice, false, 0x0519_5348_00BA_0BB4),
    (Policy::Nice, true, 0xB7AE_DC82_ADB7_9405),
    (Policy::Weights, false, 0xD0EA_5158_D354_AC96),
    (Policy::Weights, true, 0xB599_BFB6_6150_5F11),
    (Policy::Idle, false, 0x0DBB_F02B_76C2_C0C6),
    (Policy::Idle, true, 0x7F40_6299_04D6_D630),
    (Policy::CpuIdle, false, 0xCFA7_8325_633D_7E83),
    (Policy::CpuIdle, true, 0x6603_8700_0B8A_F824),
    (Policy::Be, false, 0x1B4D_9B9F_E265_C572),
    (Policy::Be, true, 0x12FC_88CE_9CA2_4B6C),
    (Policy::Fifo, false, 0x7D27_5291_A39F_D3B3),
    (Policy::Fifo, true, 0x4F29_C96A_DF84_6EF5),
];

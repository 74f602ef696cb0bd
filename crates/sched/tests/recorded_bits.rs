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
    (Policy::Nice, false, 0x1D3C_6968_76B3_8BB4),
    (Policy::Nice, true, 0xFD77_D181_43C0_97B7),
    (Policy::Weights, false, 0xECD8_3B13_2A9B_7397),
    (Policy::Weights, true, 0x5FE5_02F3_7493_2759),
    (Policy::Idle, false, 0x7CB1_3999_4DF0_2912),
    (Policy::Idle, true, 0x9B97_46DC_D8DD_226C),
    (Policy::CpuIdle, false, 0x5C2B_E073_E7C7_A5C7),
    (Policy::CpuIdle, true, 0x5CE7_4996_6B8C_37CD),
    (Policy::Be, false, 0xEBEA_13A1_FA9F_9B5A),
    (Policy::Be, true, 0x6FBB_E379_DCF1_A1D7),
    (Policy::Fifo, false, 0xC438_683B_77E8_C000),
    (Policy::Fifo, true, 0x333C_B92B_8D8B_A881),
];

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
    (config.service.is_poisson, config.service.has_reader) = (is_poisson, is_poisson);
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
    (Policy::Nice, false, 0x486D_3033_9D1E_8FBB),
    (Policy::Nice, true, 0x3D9A_F485_D95D_4C2C),
    (Policy::Weights, false, 0xB8D8_F5AA_195B_8B1B),
    (Policy::Weights, true, 0xC94F_8039_5C2E_1C7A),
    (Policy::Idle, false, 0xD9E0_5644_5FB8_8F56),
    (Policy::Idle, true, 0x578E_62B1_11F1_881D),
    (Policy::CpuIdle, false, 0x43CD_E55C_1449_5035),
    (Policy::CpuIdle, true, 0xD542_6662_653D_AE32),
    (Policy::Be, false, 0x1004_3A43_C187_3711),
    (Policy::Be, true, 0xDD30_1BFD_6ECB_3EAF),
    (Policy::Fifo, false, 0x9BFF_7171_E753_F9C3),
    (Policy::Fifo, true, 0x0E98_C8AB_416E_CD06),
];

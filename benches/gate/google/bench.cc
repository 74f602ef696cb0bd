#include <benchmark/benchmark.h>
#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>
static std::vector<int> numbers(int count) {
  std::mt19937 random(1); std::vector<int> made(count); for (int &each : made) each = random(); return made;
}
static void sort(benchmark::State &state) {
  const auto source = numbers(20000);
  for (auto _ : state) { auto copy = source; std::sort(copy.begin(), copy.end()); benchmark::DoNotOptimize(copy); }
}
BENCHMARK(sort);
static void tree(benchmark::State &state) {
  const auto source = numbers(5000);
  for (auto _ : state) { std::map<int, int> made; for (int each : source) made[each]++; benchmark::DoNotOptimize(made); }
}
BENCHMARK(tree);
static void table(benchmark::State &state) {
  const auto source = numbers(20000);
  for (auto _ : state) {
    std::unordered_map<int, int> made; for (int each : source) made[each & 4095]++; benchmark::DoNotOptimize(made);
  }
}
BENCHMARK(table);
static void text(benchmark::State &state) {
  for (auto _ : state) {
    std::string made; for (int n = 0; n < 20000; n++) made += std::to_string(n); benchmark::DoNotOptimize(made);
  }
}
BENCHMARK(text);
static void copy(benchmark::State &state) {
  std::vector<char> from(8 << 20, 1), to(8 << 20);
  for (auto _ : state) { std::memcpy(to.data(), from.data(), from.size()); benchmark::ClobberMemory(); }
}
BENCHMARK(copy);
static void chase(benchmark::State &state) {
  std::vector<int> next(1 << 20); std::iota(next.begin(), next.end(), 0);
  std::shuffle(next.begin(), next.end(), std::mt19937(2)); int at = 0;
  for (auto _ : state) { for (int n = 0; n < 10000; n++) at = next[at]; benchmark::DoNotOptimize(at); }
}
BENCHMARK(chase);
static void multiply(benchmark::State &state) {
  const int n = 96; std::vector<double> a(n * n, 1.5), b(n * n, 0.5), c(n * n);
  for (auto _ : state) {
    for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) {
      double sum = 0; for (int k = 0; k < n; k++) sum += a[i * n + k] * b[k * n + j]; c[i * n + j] = sum;
    }
    benchmark::DoNotOptimize(c.data());
  }
}
BENCHMARK(multiply);
static void sieve(benchmark::State &state) {
  for (auto _ : state) {
    std::vector<bool> is_prime(300000, true);
    for (size_t n = 2; n * n < is_prime.size(); n++)
      if (is_prime[n]) for (size_t m = n * n; m < is_prime.size(); m += n) is_prime[m] = false;
    benchmark::DoNotOptimize(is_prime);
  }
}
BENCHMARK(sieve);
BENCHMARK_MAIN();

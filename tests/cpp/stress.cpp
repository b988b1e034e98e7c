// Stress of the pool and the engine for the sanitizers (scripts/sanitize): minibatches, full
// batches and workers, dense and sparse, from several threads at once on one engine. Every result
// must have the bits of the single-threaded one.
#include <cstdio>
#include <cstring>
#include <random>
#include <thread>

#include "base/pool.h"
#include "exec/engine.h"
#include "graph/builder.h"
#include "graph/transform.h"

using namespace buropt;

/// In files of their names; they return how many results were wrong.
int fuzz_graphs();
int check_gemm();
int check_compressors();

namespace {

constexpr std::int64_t kSamples = 3001;
constexpr std::int64_t kDim = 37;

struct Samples {
  std::vector<double> dense;
  std::vector<double> labels;
  std::vector<double> values;
  std::vector<std::int32_t> columns;
  std::vector<std::int64_t> row_starts{0};

  Samples() {
    std::mt19937 random(1);
    std::uniform_real_distribution<double> uniform(-1, 1);
    for (std::int64_t i = 0; i < kSamples; ++i) {
      for (std::int32_t j = 0; j < kDim; ++j) {
        const double value = uniform(random);
        dense.push_back(value);
        if (value < 0.7) continue;
        values.push_back(value);
        columns.push_back(j);
      }
      row_starts.push_back(static_cast<std::int64_t>(values.size()));
      labels.push_back(uniform(random) < 0 ? -1 : 1);
    }
  }
};

/// scale * sum of logaddexp(0, -b a'x) and its gradient, with weight nodes for good measure.
std::unique_ptr<Engine> logistic(const Samples& samples, bool sparse) {
  Builder b(DType::float64);
  const NodeId x = b.input("x", Shape{kDim}, false);
  const NodeId a = sparse ? b.csr_input("a", kDim) : b.input("a", Shape{kDim}, true);
  const NodeId y = b.input("y", Shape{}, true);
  const NodeId scale = b.input("scale", Shape{}, false);
  const NodeId margin = b.emit("multiply", {b.emit("negative", {y}), b.emit("matmul", {a, x})});
  const NodeId loss = b.emit("logaddexp", {b.constant(0.0, DType::float64), margin});
  const NodeId sum = b.emit("batch_sum", {loss});
  const NodeId total = b.emit("add", {b.emit("multiply", {scale, sum}), b.emit("matmul", {x, x})});
  const NodeId gradient = grad(b, total, std::array{x})[0];

  Data data;
  data.n_samples = kSamples;
  const auto bytes = [](const auto& v) { return reinterpret_cast<const std::byte*>(v.data()); };
  if (!sparse) data.dense.push_back({bytes(samples.dense), kDim});
  data.dense.push_back({bytes(samples.labels), 1});
  if (sparse) {
    data.csr.push_back({bytes(samples.values), samples.columns.data(), samples.row_starts.data()});
  }
  const auto last = static_cast<std::int32_t>(data.dense.size()) - 1;
  std::vector<InputRole> inputs{{InputRole::vector, 0, 0},
                                {sparse ? InputRole::csr_data : InputRole::dense_data, 0, 0},
                                {InputRole::dense_data, last, 0},
                                {InputRole::scale, 0, 0}};
  return std::make_unique<Engine>(b.build(std::array{total, gradient}, {"f", "g"}), inputs,
                                  std::vector<OutputRole>{{0, 0}, {1, 0}}, data);
}

constexpr std::int64_t kHidden = 70;

/// sum(tanh(W a)): products of every height, with their transposes and scratch memory.
std::unique_ptr<Engine> layer(const Samples& samples) {
  Builder b(DType::float64);
  const NodeId w = b.input("w", Shape{kHidden, kDim}, false);
  const NodeId a = b.input("a", Shape{kDim}, true);
  const NodeId hidden = b.emit("tanh", {b.emit("matmul", {w, a})});
  const NodeId loss = b.emit("sum", {hidden}, Attributes({0}, {0}));
  const NodeId total = b.emit("batch_sum", {loss});
  const NodeId gradient = grad(b, total, std::array{w})[0];
  Data data;
  data.n_samples = kSamples;
  data.dense.push_back({reinterpret_cast<const std::byte*>(samples.dense.data()), kDim});
  std::vector<InputRole> inputs{{InputRole::vector, 0, 0}, {InputRole::dense_data, 0, 0}};
  return std::make_unique<Engine>(b.build(std::array{total, gradient}, {"f", "g"}), inputs,
                                  std::vector<OutputRole>{{0, 0}, {1, 0}}, data);
}

using Result = std::vector<double>;

/// Value and gradient of the layer over the first `count` samples.
Result evaluate_layer(const Engine& engine, const std::vector<double>& w, std::int64_t count,
                      int threads) {
  Result result(1 + kHidden * kDim);
  const std::array<const std::byte*, 1> vectors{reinterpret_cast<const std::byte*>(w.data())};
  auto* out = reinterpret_cast<std::byte*>(result.data());
  const Batch batch{-1, nullptr, 0, count, nullptr, {out, out + sizeof(double)}};
  engine.run(vectors, 1, std::span<const Batch>(&batch, 1), threads);
  return result;
}

/// Value and gradient over everything, over a minibatch with repeats, and of five workers.
Result evaluate(const Engine& engine, const std::vector<double>& x, int threads) {
  std::vector<std::int64_t> idx;
  for (std::int64_t i = 0; i < 701; ++i) idx.push_back(i * 7919 % kSamples / 2);
  std::vector<Batch> batches;
  Result result(7 * (kDim + 1));
  const std::array<const std::byte*, 1> vectors{reinterpret_cast<const std::byte*>(x.data())};
  const auto add = [&](const std::int64_t* rows, std::int64_t first, std::int64_t count) {
    double* out = result.data() + batches.size() * (kDim + 1);
    const auto fixed = rows == nullptr ? static_cast<std::int64_t>(batches.size()) : -1;
    batches.push_back({fixed, rows, first, count, nullptr, {}});
    batches.back().outputs = {reinterpret_cast<std::byte*>(out),
                              reinterpret_cast<std::byte*>(out + 1)};
  };
  add(nullptr, 0, kSamples);
  add(idx.data(), 0, static_cast<std::int64_t>(idx.size()));
  for (std::int64_t w = 0; w < 5; ++w) add(nullptr, w * 600, 600);
  engine.run(vectors, 0.5, batches, threads);
  return result;
}

bool equal(const Result& a, const Result& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

}  // namespace

int main() {
  const Samples samples;
  const std::vector<double> x(kDim, 0.1);
  int failures = 0;
  for (const bool sparse : {false, true}) {
    const std::unique_ptr<Engine> engine = logistic(samples, sparse);
    const Result expected = evaluate(*engine, x, 1);
    for (const int threads : {2, 3, 8, 2}) {
      for (int repeat = 0; repeat < 20; ++repeat) {
        failures += !equal(evaluate(*engine, x, threads), expected);
      }
    }
    std::vector<std::thread> callers;
    std::array<int, 3> wrong{};
    for (std::size_t c = 0; c < wrong.size(); ++c) {
      callers.emplace_back([&, c] {
        for (int repeat = 0; repeat < 20; ++repeat) {
          wrong[c] += !equal(evaluate(*engine, x, 1 + repeat % 3), expected);
        }
      });
    }
    for (std::thread& caller : callers) caller.join();
    for (const int w : wrong) failures += w;
  }
  const std::unique_ptr<Engine> engine = layer(samples);
  const std::vector<double> w(kHidden * kDim, 0.01);
  for (const std::int64_t count : {1, 2, 3, 5, 8, 9, 17, 100, 257, 3001}) {
    failures += !equal(evaluate_layer(*engine, w, count, 3), evaluate_layer(*engine, w, count, 1));
  }
  failures += fuzz_graphs();
  failures += check_gemm();
  failures += check_compressors();
  std::printf("%d wrong results\n", failures);
  return failures == 0 ? 0 : 1;
}

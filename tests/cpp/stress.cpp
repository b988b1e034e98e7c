// Stress of the pool and the engine for the sanitizers (scripts/sanitize): minibatches, full
// batches and workers, dense and sparse, from several threads at once on one engine, and graphs of
// the scalar executor. Every result must have the bits of the single-threaded one.
#include <cstdio>
#include <cstring>
#include <functional>
#include <numeric>
#include <thread>

#include "base/pool.h"
#include "exec/engine.h"
#include "graph/builder.h"
#include "graph/transform.h"
#include "samples.h"

using namespace buropt;

/// In files of their names; they return how many results were wrong.
int fuzz_graphs();
int check_gemm();
int check_sliced();
int check_compressors();
int check_inner();
int fuzz_libsvm();

namespace {

constexpr std::int64_t kSamples = Samples::kCount;
constexpr std::int64_t kDim = Samples::kDim;

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

  const Data data = samples.data(sparse);
  const auto last = static_cast<std::int32_t>(data.dense.size()) - 1;
  std::vector<InputRole> inputs{{InputRole::vector, 0, 0},
                                {sparse ? InputRole::csr_data : InputRole::dense_data, 0, 0},
                                {InputRole::dense_data, last, 0},
                                {InputRole::scale, 0, 0}};
  return std::make_unique<Engine>(b.build(std::array{total, gradient}, {"f", "g"}), inputs,
                                  std::vector<OutputRole>{{0, 0}, {1, 0}}, data);
}

constexpr std::int64_t kHidden = 70;
constexpr std::int64_t kFew = 5;

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

/// A graph of a few numbers: log(1 + |x|^2) and its gradient, by a program of scalars.
std::unique_ptr<Engine> few_numbers() {
  Builder b(DType::float64);
  const NodeId x = b.input("x", Shape{kFew}, false);
  const NodeId f = b.emit("log1p", {b.emit("matmul", {x, x})});
  const NodeId gradient = grad(b, f, std::array{x})[0];
  return std::make_unique<Engine>(b.build(std::array{f, gradient}, {"f", "g"}),
                                  std::vector<InputRole>{{InputRole::vector, 0, 0}},
                                  std::vector<OutputRole>{{0, 0}, {1, 0}}, Data());
}

Result evaluate_few(const Engine& engine, double x) {
  const std::vector<double> at(kFew, x);
  const std::array<const std::byte*, 1> vectors{Samples::bytes(at)};
  Result result(1 + kFew);
  auto* out = reinterpret_cast<std::byte*>(result.data());
  const Batch batch{-1, nullptr, 0, 1, nullptr, {out, out + sizeof(double)}};
  engine.run(vectors, 1, std::span<const Batch>(&batch, 1), 1);
  return result;
}

bool equal(const Result& a, const Result& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

/// Three callers at once.
int wrong_in_threads(const std::function<bool(int)>& is_wrong) {
  std::array<int, 3> wrong{};
  std::vector<std::thread> callers;
  for (int& count : wrong) {
    callers.emplace_back([&] {
      for (int repeat = 0; repeat < 20; ++repeat) count += is_wrong(repeat);
    });
  }
  for (std::thread& caller : callers) caller.join();
  return std::accumulate(wrong.begin(), wrong.end(), 0);
}

int wrong_batches(const Samples& samples) {
  const std::vector<double> x(kDim, 0.1);
  int wrong = 0;
  for (const bool sparse : {false, true}) {
    const std::unique_ptr<Engine> engine = logistic(samples, sparse);
    const Result expected = evaluate(*engine, x, 1);
    for (const int threads : {2, 3, 8, 2}) {
      for (int repeat = 0; repeat < 20; ++repeat) {
        wrong += !equal(evaluate(*engine, x, threads), expected);
      }
    }
    wrong += wrong_in_threads(
        [&](int repeat) { return !equal(evaluate(*engine, x, 1 + repeat % 3), expected); });
  }
  return wrong;
}

int wrong_layers(const Samples& samples) {
  const std::unique_ptr<Engine> engine = layer(samples);
  const std::vector<double> w(kHidden * kDim, 0.01);
  int wrong = 0;
  for (const std::int64_t count : {1, 2, 3, 5, 8, 9, 17, 100, 257, 3001}) {
    wrong += !equal(evaluate_layer(*engine, w, count, 3), evaluate_layer(*engine, w, count, 1));
  }
  return wrong;
}

int wrong_scalars() {
  const std::unique_ptr<Engine> engine = few_numbers();
  if (!engine->is_scalar()) return 1;
  const Result expected = evaluate_few(*engine, 0.5);
  return wrong_in_threads([&](int) { return !equal(evaluate_few(*engine, 0.5), expected); });
}

}  // namespace

int main() {
  const Samples samples;
  int failures = 0;
  const auto count = [&](const char* what, int wrong) {
    std::printf("%s: %d wrong results\n", what, wrong);
    failures += wrong;
  };
  count("batches", wrong_batches(samples));
  count("layers", wrong_layers(samples));
  count("scalars", wrong_scalars());
  count("graphs", fuzz_graphs());
  count("LIBSVM files", fuzz_libsvm());
  count("products", check_gemm());
  count("sliced products", check_sliced());
  count("compressors", check_compressors());
  count("inner loops", check_inner());
  return failures == 0 ? 0 : 1;
}

// Inner loops, Hessians and entries of workers for the sanitizers (scripts/sanitize): the same bits
// for all numbers of threads, and for all ways to cut steps into calls.
#include <array>
#include <cstdio>
#include <functional>

#include "compress/randk.h"
#include "compress/topk.h"
#include "graph/builder.h"
#include "graph/linear.h"
#include "graph/transform.h"
#include "inner/columns.h"
#include "inner/general.h"
#include "inner/hessians.h"
#include "inner/lazy.h"
#include "inner/patterns.h"
#include "inner/scaled.h"
#include "samples.h"

using namespace buropt;

int check_inner();

namespace {

constexpr std::int64_t kN = Samples::kCount;
constexpr std::int64_t kD = Samples::kDim;
constexpr std::int64_t kSteps = 2100;  // more than two flushes

using Vector = std::vector<double>;
using Results = std::vector<Vector>;

Vector zeros(std::int64_t size) { return Vector(static_cast<std::size_t>(size)); }

std::vector<std::int64_t> draw_samples(std::int64_t count) {
  std::mt19937 random(3);
  std::vector<std::int64_t> idx;
  for (std::int64_t t = 0; t < count; ++t) idx.push_back(random() % kN);
  return idx;
}

/// log(1 + exp(-y a'x)) of a sample: its value, or its gradient summed over the batch.
std::shared_ptr<const Graph> logistic(bool gradient) {
  Builder b(DType::float64);
  const NodeId x = b.input("x", Shape{kD}, false);
  const NodeId a = b.csr_input("a", kD);
  const NodeId y = b.input("y", Shape{}, true);
  const NodeId margin = b.emit("multiply", {b.emit("negative", {y}), b.emit("matmul", {a, x})});
  const NodeId loss = b.emit("logaddexp", {b.constant(0.0, DType::float64), margin});
  if (!gradient) return b.build(std::array{loss}, {"f"});
  const NodeId scale = b.input("scale", Shape{}, false);
  const NodeId mean = b.emit("multiply", {scale, b.emit("batch_sum", {loss})});
  return b.build(std::array{grad(b, mean, std::array{x})[0]}, {"g"});
}

// ---- Linear models

/// What is left of kSteps steps made in calls of so many: the state and SAGA's table.
template <class Call>
Results in_calls_of(std::int64_t most, const Call& call) {
  Results state{zeros(kD), zeros(kD), zeros(kN), {1, 0, 0}};
  const std::vector<std::int64_t> idx = draw_samples(kSteps);
  const Deadline never(3600);
  auto& scales = *reinterpret_cast<Scales*>(state[3].data());
  for (std::int64_t t = 0; t < kSteps; t += most) {
    const Steps steps{idx.data() + t, std::min(most, kSteps - t), 1};
    call(steps, scales, never, state[2].data(), state[0].data(), state[1].data());
  }
  return state;
}

template <Correction kind>
int wrong_steps(LinearModel<double>& model) {
  std::vector<std::int32_t> made;
  const auto smooth = [&](const Steps& steps, Scales& s, const Deadline& end, double* slopes,
                          double* p, double* q) {
    corrected_steps<kind, double>(model, kD, steps, nullptr, 0.1, 0.01, s, end, slopes, p, q);
  };
  const auto thresholded = [&](const Steps& steps, Scales& s, const Deadline& end, double* slopes,
                               double* p, double* q) {
    if (s.since == 0 && p[0] == 0) made.assign(static_cast<std::size_t>(kD), 0);
    const LazySteps<double> lazy(0.1, 0.01, 1e-3, made.data());
    thresholded_steps<kind, double>(model, kD, steps, nullptr, s.since, lazy, end, slopes, p, q);
  };
  const Results thresholded_at_once = in_calls_of(kSteps, thresholded);
  made.assign(static_cast<std::size_t>(kD), 0);
  return (in_calls_of(kSteps, smooth) != in_calls_of(100, smooth)) +
         (thresholded_at_once != in_calls_of(100, thresholded));
}

int wrong_linear(const Samples& samples) {
  const Data data = samples.data(true);
  const auto loss = linear_loss(*logistic(false));
  if (!loss) return 1;
  const auto model = LinearModel<double>::make(*loss, data, data.csr[0], {samples.labels.data()});
  if (model == nullptr) return 1;
  const auto sarah = [&](const Steps& steps, Scales& s, const Deadline& end, double*, double* p,
                         double* q) {
    recursive_steps<double>(*model, kD, steps, 0.1, 0.01, s, end, p, q);
  };
  return wrong_steps<Correction::none>(*model) + wrong_steps<Correction::anchor>(*model) +
         wrong_steps<Correction::table>(*model) +
         (in_calls_of(kSteps, sarah) != in_calls_of(64, sarah));
}

// ---- Any loss

Results general_steps(const Engine& engine, int threads) {
  constexpr std::int64_t kBatch = 300, kCount = 6;
  GeneralSteps<double> loops(engine, kD, threads);
  const std::vector<std::int64_t> idx = draw_samples(kBatch * kCount);
  const Steps steps{idx.data(), kCount, kBatch};
  const Vector step_sizes(kCount, 0.1), w(kD, 0.1), full(kD, 0.01);
  const Prox<double> prox{Prox<double>::elastic_net, 1e-3, 1e-3};
  const Deadline never(3600);
  Results x(4, zeros(kD));
  Vector table = zeros(kN * kD), mean = zeros(kD), v(kD, 0.01);
  loops.sgd(steps, step_sizes.data(), nullptr, prox, never, x[0].data());
  loops.svrg(steps, 0.1, nullptr, prox, never, w.data(), full.data(), x[1].data());
  loops.saga({idx.data(), kCount, 1}, 0.1, nullptr, kN, prox, never, x[2].data(), table.data(),
             mean.data());
  loops.sarah(steps, 0.1, never, x[3].data(), v.data());
  x.push_back(v);
  x.push_back(mean);
  return x;
}

int wrong_general(const Samples& samples) {
  const std::vector<InputRole> inputs{{InputRole::vector, 0, 0},
                                      {InputRole::csr_data, 0, 0},
                                      {InputRole::dense_data, 0, 0},
                                      {InputRole::scale, 0, 0}};
  // The loops give the gradient's vector the number 1.
  const Engine engine(logistic(true), inputs, {{1, 0, 0}}, samples.data(true));
  return general_steps(engine, 3) != general_steps(engine, 1);
}

// ---- Workers

/// The last of them has its samples in no order.
std::vector<Batch> workers(const std::vector<std::int64_t>& idx) {
  std::vector<Batch> batches(4);
  for (std::int64_t i = 0; i < 3; ++i) {
    batches[static_cast<std::size_t>(i)].first = i * 700;
    batches[static_cast<std::size_t>(i)].count = 700;
  }
  batches[3].idx = idx.data();
  batches[3].count = std::ssize(idx);
  return batches;
}

template <class Rule>
Results fednl(const Samples& samples, bool sparse, int threads, const Rule& rule) {
  const SelectorOf<Rule> compressor(rule);
  const std::vector<std::int64_t> idx = draw_samples(500), all{0, 1, 2, 3};
  const std::vector<Batch> batches = workers(idx);
  const std::int64_t size = triangle_size(kD), kept = rule.k;
  Data data = samples.data(sparse);
  if (sparse) data.dense.clear();
  const Vector weights(kN, 0.25), penalty(static_cast<std::size_t>(size), 0.1);
  const GramSource<double> source{data, batches, kD, weights.data(), penalty.data()};
  Results r{zeros(4 * size), zeros(size), zeros(4 * kept), zeros(4 * kept), zeros(4), zeros(4)};
  std::vector<std::uint32_t> indices(static_cast<std::size_t>(4 * kept));
  HessianThreads<double> memory;
  for (std::uint64_t round = 0; round < 3; ++round) {
    const HessianRound<double> arrays{all,         size,        kept,           0.5,
                                      r[0].data(), r[1].data(), indices.data(), r[2].data(),
                                      r[3].data(), r[4].data(), r[5].data()};
    learn(compressor, RandomKey{1, round, 2}, source, arrays, 4, threads, memory);
  }
  r.emplace_back(indices.begin(), indices.end());
  return r;
}

int wrong_hessians(const Samples& samples) {
  int wrong = 0;
  for (const bool sparse : {false, true}) {
    const TopK top{40};
    const RandK some{40, true, false};
    wrong += fednl(samples, sparse, 3, top) != fednl(samples, sparse, 1, top);
    wrong += fednl(samples, sparse, 3, some) != fednl(samples, sparse, 1, some);
  }
  return wrong;
}

/// Entries of A_i^T s, against a plain loop; the numbers are whole, so that order does not matter.
int wrong_entries(const Samples& samples) {
  const std::vector<std::int64_t> idx = draw_samples(500);
  const std::vector<Batch> batches = workers(idx);
  CsrData a = samples.data(true).csr[0];
  a.values = nullptr;
  const WorkerColumns<double> columns(a, kD, batches);
  std::vector<std::int64_t> all;
  for (std::int64_t c = 0; c < kD; ++c) all.push_back(kD - 1 - c);
  Vector s, t, scratch = zeros(columns.scratch()), out = zeros(kD);
  for (std::int64_t i = 0; i < kN; ++i) {
    s.push_back(static_cast<double>(i % 7));
    t.push_back(static_cast<double>(i % 5));
  }
  int wrong = 0;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    columns.entries(i, all, s.data(), t.data(), scratch.data(), out.data());
    Vector expected = zeros(kD);
    for (std::int64_t k = 0; k < batches[i].count; ++k) {
      const std::int64_t row = batches[i].idx == nullptr ? batches[i].first + k : batches[i].idx[k];
      for (std::int64_t e = a.row_starts[row]; e < a.row_starts[row + 1]; ++e) {
        expected[static_cast<std::size_t>(kD - 1 - a.columns[e])] +=
            s[static_cast<std::size_t>(row)] - t[static_cast<std::size_t>(row)];
      }
    }
    wrong += out != expected;
  }
  return wrong;
}

/// Products of rows of ones, a column of each of a few groups, in which few pieces are different.
int wrong_patterns() {
  constexpr std::int32_t kGroups = 12, kChoices = 2;
  std::mt19937 random(4);
  std::vector<std::int32_t> columns;
  std::vector<std::int64_t> starts{0};
  for (std::int64_t i = 0; i < kN; ++i) {
    for (std::int32_t g = 0; g < kGroups; ++g) {
      columns.push_back(g * kChoices + static_cast<std::int32_t>(random() % kChoices));
    }
    starts.push_back(std::ssize(columns));
  }
  constexpr std::int64_t kWide = kGroups * kChoices;
  const auto patterns =
      RowPatterns<double>::find({nullptr, columns.data(), starts.data()}, kN, kWide);
  if (!patterns) return 1;
  Vector x;
  for (std::int64_t j = 0; j < kWide; ++j) x.push_back(static_cast<double>(j * j % 11));
  Vector table(patterns->table_size()), z = zeros(kN), expected = zeros(kN);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    for (std::int64_t e = starts[i]; e < starts[i + 1]; ++e) {
      expected[i] += x[static_cast<std::size_t>(columns[static_cast<std::size_t>(e)])];
    }
  }
  int wrong = 0;
  for (const int threads : {1, 3}) {
    patterns->times(x.data(), z.data(), table.data(), threads);
    wrong += z != expected;
  }
  return wrong;
}

}  // namespace

int check_inner() {
  const Samples samples;
  return wrong_linear(samples) + wrong_general(samples) + wrong_hessians(samples) +
         wrong_entries(samples) + wrong_patterns();
}

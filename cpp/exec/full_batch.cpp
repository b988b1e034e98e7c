// The batch of all samples, where products with sparse data are made for all of them at once.
//
// What such a product costs in a tile is reads and writes all over the vectors. For all samples the
// copies of the data (sliced_copy.h) take half of the time, in three steps: products of the rows
// with vectors; the tiles, which read their samples' products, and leave the factors of sums; these
// sums, by columns. Of narrow data a slot sums up its own block of samples after its tiles, into
// its accumulators. Minibatches and the workers' batches go through the program as it is.
#include <algorithm>
#include <cstring>

#include "exec/sliced_copy.h"
#include "exec/workspace.h"
#include "math/lanes.h"
#include "ops/sparse.h"

namespace buropt {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

/// numbers: bytes of a sample's value.
void copy_numbers(const Instruction& s, const Frame& frame) noexcept {
  std::memcpy(frame.buffers[s.out], frame.buffers[s.in[0]], at(frame.rows * s.numbers[0]));
}

}  // namespace

void Engine::find_full_products() {
  full_tile_ = program_.tile;
  for (Instruction& s : full_tile_) {
    const SparseProduct kind = sparse_product(s);
    if (kind == SparseProduct::none) continue;
    const auto buffer = std::ranges::find(program_.input_buffers, s.in[0]);
    const auto input = at(buffer - program_.input_buffers.begin());
    const auto csr = at(inputs_[input].number);
    const std::int64_t width = program_.graph->node(program_.graph->inputs[input].node).type.size();
    auto& sliced = data_.csr[csr].sliced;
    if (!sliced) sliced = std::make_shared<SlicedCopy>();
    if (!sliced->pays(data_.csr[csr], data_.n_samples, width, program_.dtype)) continue;
    const bool is_sum = kind == SparseProduct::sum;
    const auto rows = static_cast<std::int32_t>(program_.places.size() + full_products_.size());
    const std::int64_t block_rows =
        is_sum ? SlicedCopy::block_rows(data_.csr[csr], data_.n_samples, width) : 0;
    block_rows_ = std::max(block_rows_, block_rows);
    full_products_.push_back({is_sum, csr, width, is_sum ? s.out : s.in[1], rows, block_rows != 0});
    Instruction copy;
    copy.run = copy_numbers;
    copy.in = {is_sum ? s.in[1] : rows};
    copy.out = is_sum ? rows : s.out;
    copy.numbers = {size_of(program_.dtype)};
    s = std::move(copy);
  }
  n_buffers_ = program_.places.size() + full_products_.size();
  if (full_products_.empty()) full_tile_.clear();
  for (Accumulator& a : accumulators_) {
    a.is_full_sum = std::ranges::any_of(full_products_, [&](const FullProduct& p) {
      return p.is_sum && !p.is_by_blocks && p.vector == a.buffer;
    });
    std::int64_t& bytes = a.is_full_sum ? full_sum_bytes_ : full_slot_bytes_;
    a.full_offset = bytes;
    bytes += static_cast<std::int64_t>(round_up(at(a.size * size_of(program_.dtype))));
  }
}

bool Engine::is_full(std::span<const Batch> batches) const {
  return !full_products_.empty() && batches.size() == 1 && batches[0].idx == nullptr &&
         batches[0].first == 0 && batches[0].count == data_.n_samples;
}

std::int64_t Engine::slot_bytes(const Run& run) const {
  return run.is_full ? full_slot_bytes_ : program_.accumulator_bytes;
}

/// matrix times x.
template <class T>
void Engine::multiply_full(const Run& run, const SlicedMatrix<T>& matrix, const std::byte* x,
                           std::byte* z) const {
  Buffer& scratch = run.workspace.full_scratch;
  scratch.reserve(at(matrix.n_cut_pieces()) * sizeof(T));
  matrix.times(reinterpret_cast<const T*>(x), reinterpret_cast<T*>(z),
               reinterpret_cast<T*>(scratch.data()), run.threads);
}

void Engine::run_full_dots(const Run& run) const {
  Workspace& w = run.workspace;
  w.full_sums.reserve(at(full_sum_bytes_));
  for (std::size_t k = 0; k < full_products_.size(); ++k) {
    const FullProduct& p = full_products_[k];
    const CsrData& csr = data_.csr[p.csr];
    w.full_rows[k].reserve(at(data_.n_samples * size_of(program_.dtype)));
    if (p.is_sum && !p.is_by_blocks) continue;
    dispatch(program_.dtype, [&](auto zero) {
      if (p.is_by_blocks) {
        for (const auto& block :
             csr.sliced->columns<decltype(zero)>(csr, data_.n_samples, p.width)) {
          w.block_scratch_bytes =
              std::max<std::int64_t>(w.block_scratch_bytes, block.n_cut_pieces() * sizeof(zero));
        }
        return;
      }
      const auto& matrix = csr.sliced->rows<decltype(zero)>(csr, data_.n_samples, p.width);
      multiply_full(run, matrix, w.buffers[at(p.vector)], w.full_rows[k].data());
    });
  }
}

void Engine::run_full_sums(const Run& run) const {
  Workspace& w = run.workspace;
  for (std::size_t k = 0; k < full_products_.size(); ++k) {
    const FullProduct& p = full_products_[k];
    if (!p.is_sum || p.is_by_blocks) continue;
    const CsrData& csr = data_.csr[p.csr];
    const auto a = std::ranges::find(accumulators_, p.vector, &Accumulator::buffer);
    dispatch(program_.dtype, [&](auto zero) {
      const auto& matrices = csr.sliced->columns<decltype(zero)>(csr, data_.n_samples, p.width);
      multiply_full(run, matrices[0], w.full_rows[k].data(), sums(run, 0, 0, *a));
    });
  }
}

void Engine::run_block_sums(const Run& run, std::int64_t slot, ThreadState& state) const {
  for (std::size_t k = 0; k < full_products_.size(); ++k) {
    const FullProduct& p = full_products_[k];
    if (!p.is_by_blocks) continue;
    const CsrData& csr = data_.csr[p.csr];
    dispatch(program_.dtype, [&](auto zero) {
      using T = decltype(zero);
      const auto& blocks = csr.sliced->columns<T>(csr, data_.n_samples, p.width);
      const auto* factors = reinterpret_cast<const T*>(run.workspace.full_rows[k].data());
      blocks[at(slot)].times(factors + slot * block_rows_,
                             reinterpret_cast<T*>(state.buffers[at(p.vector)]),
                             reinterpret_cast<T*>(state.block_scratch.data()), 1);
    });
  }
}

}  // namespace buropt

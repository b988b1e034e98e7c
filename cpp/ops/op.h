// The contract of a primitive. Start reading here.
//
// A primitive is one Op record: name, documentation, shape rule, reverse rule, tile kernel and
// element rule, defined in exactly one file of this folder. An elementwise primitive is a struct of
// formulas from which elementwise.h derives the record; the others fill it in by hand. registry.cpp
// collects the records. Nothing else in the core names a primitive that it does not need.
//
//   infer     types of the operands -> type of the result; raises on a user's mistake
//   simplify  may put a simpler node in place of the one asked for
//   reverse   emits the nodes that carry the result's cotangent back to the operands
//   forward   emits the nodes that carry the operands' tangents to the result; a primitive that is
//             linear says so instead, and any other falls back on the transpose of `reverse`
//   lower     chooses the kernel for given types and fills in its integers
//   elements  the same value for single elements, used by the scalar executor
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ops/type.h"

namespace buropt {

/// How a node came about. Inputs and constants have op kNoOp.
inline constexpr OpId kNoOp = -1;
struct Definition {
  OpId op;
  std::span<const NodeId> inputs;
  const Attributes& attributes;
};

/// Appends nodes to a graph; implemented by the graph's builder.
class Emitter {
 public:
  virtual ~Emitter() = default;
  virtual NodeId emit(OpId op, std::span<const NodeId> inputs, const Attributes& attributes) = 0;
  virtual NodeId constant(double value, DType dtype) = 0;
  /// Row-major values, rounded to the dtype.
  virtual NodeId constant(std::span<const double> values, const Shape& shape, DType dtype) = 0;
  virtual Type type(NodeId node) const = 0;
  virtual Definition definition(NodeId node) const = 0;
  /// The value of a constant node whose elements are all equal.
  virtual std::optional<double> uniform_value(NodeId node) const = 0;

  NodeId emit(std::string_view name, std::initializer_list<NodeId> inputs,
              const Attributes& attributes = {});
};

/// A node as a reverse rule sees it.
struct NodeView {
  NodeId id;
  std::span<const NodeId> inputs;
  const Attributes& attributes;
  /// A branch of a `where` depends on it: a part of the cotangent may be 0 where the value is not
  /// finite, and must then contribute 0. The transform sees to elementwise primitives and to
  /// cotangents that are 0 throughout.
  bool guarded = false;
};

/// Cotangents of a node's operands; kNone where nothing flows.
inline constexpr NodeId kNone = -1;

/// Memory of one run: where each buffer stands, and how many samples the tile holds.
struct Frame {
  std::byte* const* buffers;
  std::int64_t rows;
  std::byte* scratch;
  /// Accumulators hold the sums of earlier tiles. Otherwise what they hold is not to be read: an
  /// instruction that `starts_sums` writes its own; others find zeros.
  bool adds = true;
  /// By buffer: which rows of the data the samples are, where they were not copied together. An
  /// instruction meets them in operands that it `picks` alone.
  const std::int64_t* const* picks = nullptr;
  /// By buffer: the same rows without their zeros, as CsrRows, where there is such a copy.
  const std::byte* const* sparse = nullptr;
  /// Not 0: where step_rows allows it, an instruction subtracts this times its sum from what the
  /// result holds, instead of writing the sum.
  double step = 0;
  /// Of an instruction that `splits`: which part of how many this call computes.
  std::int32_t part = 0;
  std::int32_t parts = 1;
};

struct Instruction;
struct Fused;
using Kernel = void (*)(const Instruction&, const Frame&) noexcept;

/// One step of a program: a kernel, buffer numbers, and the integers that lower() chose.
struct Instruction {
  Kernel run = nullptr;
  std::int32_t out = -1;
  std::vector<std::int32_t> in;
  std::vector<std::int64_t> numbers;
  /// Samples in the tile count as rows of this instruction (otherwise there is one row).
  bool batched = false;
  /// Of a sum over the samples: the kernel minds Frame::adds.
  bool starts_sums = false;
  /// Of a sum over the samples: of up to so many, the kernel minds Frame::step. Of a value that all
  /// samples share: above 0 if it does.
  std::int64_t step_rows = 0;
  /// Any number of threads may each compute a part of the result, with the same bits.
  bool splits = false;
  /// Of a value for each sample: so they may if each has some of the samples.
  bool splits_rows = false;
  /// Bits of the operands of which it takes the samples' rows through Frame::picks.
  std::uint8_t picks = 0;
  /// Rough number of multiply-adds for one sample.
  std::int64_t work = 0;
  /// Bytes of scratch memory that the kernel needs, for the largest tile.
  std::int64_t scratch_bytes = 0;
  /// The parts of several instructions that run as one.
  std::shared_ptr<const Fused> fused;

  std::int64_t rows(const Frame& frame) const noexcept { return batched ? frame.rows : 1; }
};

/// What lower() knows.
struct LowerContext {
  std::span<const Type> in;
  const Type& out;
  const Attributes& attributes;
  std::int64_t max_rows;
};

template <class T>
T* buffer_as(const Frame& frame, std::int32_t buffer) noexcept {
  return reinterpret_cast<T*>(frame.buffers[buffer]);
}

/// One instruction of the scalar executor, over a file of registers. A handler computes and then
/// continues with the next instruction itself (direct threading).
template <class T>
struct ScalarInstruction {
  using Handler = void (*)(T* registers, const ScalarInstruction* at);
  Handler run;
  std::int32_t out;
  std::array<std::int32_t, 4> in;
  std::int64_t number;
};

// GCC turns the call of the next handler into a jump when it optimizes; Clang is told to (and
// cannot in a noexcept function). Without optimization the executor loops instead.
#if defined(__clang__)
#define BUROPT_CONTINUE(registers, at) [[clang::musttail]] return (at)[1].run(registers, (at) + 1)
#elif defined(__OPTIMIZE__)
#define BUROPT_CONTINUE(registers, at) return (at)[1].run(registers, (at) + 1)
#else
#define BUROPT_SCALAR_LOOP
#define BUROPT_CONTINUE(registers, at) return
#endif

struct ScalarHandlers {
  ScalarInstruction<float>::Handler f32 = nullptr;
  ScalarInstruction<double>::Handler f64 = nullptr;
};

/// What an element rule may ask: it names registers and emits elementwise primitives on them.
class ElementEmitter {
 public:
  virtual ~ElementEmitter() = default;
  virtual std::int32_t in(int operand, std::int64_t element) const = 0;
  virtual void out(std::int64_t element, std::int32_t reg) = 0;
  virtual std::int32_t emit(std::string_view op, std::span<const std::int32_t> regs,
                            std::int64_t number = 0) = 0;
  virtual std::int32_t zero() = 0;
  virtual std::int32_t constant(double value) = 0;
  /// The element of an operand that is a constant.
  virtual std::optional<double> known(int operand, std::int64_t element) const = 0;
  /// There are no single elements to compute this value by: the graph runs in tiles.
  virtual void decline() = 0;
  virtual int arity() const = 0;
  virtual const Type& in_type(int operand) const = 0;
  virtual const Type& out_type() const = 0;
  virtual const Attributes& attributes() const = 0;

  std::int32_t emit(std::string_view op, std::initializer_list<std::int32_t> regs) {
    return emit(op, std::span<const std::int32_t>(regs.begin(), regs.size()));
  }
};

/// How the result of a primitive stands to the batch.
enum class Batching {
  follows,  ///< batched when an operand is
  reduces,  ///< sums over the samples into an accumulator: unbatched
  spreads,  ///< always batched
};

using Interval = std::array<double, 2>;

/// In which operands a primitive is linear; its tangent is then the primitive itself again.
enum class Linearity {
  none,
  jointly,  ///< in all operands together (concatenate, sum)
  each,     ///< in each operand while the others are fixed (matmul)
  first,    ///< in the first operand; the result is piecewise constant in the others (take)
};

struct Op {
  std::string_view name;
  std::string_view doc;
  int arity = 1;  ///< -1: any number
  std::array<std::string_view, Attributes::kLists> attributes{};
  bool elementwise = false;
  /// Derived by the registry for reverse rules; not a function that users write.
  bool derived = false;
  Batching batching = Batching::follows;
  /// Result shares the operand's buffer (reshape).
  bool alias = false;
  /// Never merged with an equal node nor folded into a constant.
  bool opaque = false;
  /// Reads no more of its first operand than the result holds.
  bool picks = false;
  /// Result may overwrite an operand of the same size.
  bool in_place = false;
  /// Where tests sample the operands: a range for each of the first few.
  std::array<Interval, 3> domain{{{-3, 3}, {-3, 3}, {-3, 3}}};

  /// A node that has the value asked for, or kNone to emit the primitive as it stands.
  NodeId (*simplify)(Emitter& e, std::span<const NodeId> inputs,
                     const Attributes& attributes) = nullptr;
  Type (*infer)(std::span<const Type> in, const Attributes& attributes) = nullptr;
  /// cotangents has one entry per operand, kNone on entry.
  void (*reverse)(Emitter& e, const NodeView& node, NodeId cotangent,
                  std::span<NodeId> cotangents) = nullptr;
  Linearity linearity = Linearity::none;
  /// tangents has one entry per operand, kNone for 0; so is the result's.
  NodeId (*forward)(Emitter& e, const NodeView& node, std::span<const NodeId> tangents) = nullptr;
  /// A node with this primitive's value summed over the samples, or kNone to sum it as it stands.
  NodeId (*batch_sum)(Emitter& e, std::span<const NodeId> inputs,
                      const Attributes& attributes) = nullptr;
  /// Multiply-adds for one sample, where they are not about one for each element walked through.
  std::int64_t (*work)(std::span<const Type> in, const Type& out,
                       const Attributes& attributes) = nullptr;
  void (*lower)(const LowerContext& context, Instruction& instruction) = nullptr;
  void (*elements)(ElementEmitter& e) = nullptr;
  ScalarHandlers scalar{};
  /// A fused primitive's formula in plain primitives, for its own derivative: of one that has it
  /// and no `reverse`, the formula is differentiated in its place.
  NodeId (*expand)(Emitter& e, std::span<const NodeId> inputs,
                   const Attributes& attributes) = nullptr;
};

/// The registry: all primitives, numbered. find_op() raises for an unknown name.
std::span<const Op> all_ops();
OpId find_op(std::string_view name);
const Op& op(OpId id);

inline NodeId Emitter::emit(std::string_view name, std::initializer_list<NodeId> inputs,
                            const Attributes& attributes) {
  return emit(find_op(name), std::span<const NodeId>(inputs.begin(), inputs.size()), attributes);
}

}  // namespace buropt

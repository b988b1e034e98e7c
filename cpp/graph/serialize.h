// A graph as bytes, and back. The layout, all integers little-endian:
//
//   signature   8 bytes
//   version     u32
//   size        u64, of the payload
//   checksum    u32, CRC-32 of the payload
//   payload     dtype; names of the primitives used; inputs; constants; nodes; outputs
//
// In the payload counts, numbers and extents are LEB128 varints, attributes zigzag varints, and
// elements of constants as they lie in memory. A primitive is written by its name, so that its
// number may change, and every node carries its type, which reading compares with the shape rule.
//
// Reading trusts nothing: any bytes at all give a graph or one Error that says what is wrong with
// them, and no count makes it allocate more than the bytes could hold.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "graph/graph.h"

namespace buropt {

/// The newest version of the layout, which is the one written. Older ones are read as well.
inline constexpr std::uint32_t kGraphFormat = 1;

std::string to_bytes(const Graph& graph);

/// `name` stands for the bytes in error messages, e.g. the file that they come from.
std::shared_ptr<const Graph> graph_from_bytes(std::span<const std::byte> bytes,
                                              const std::string& name);

}  // namespace buropt

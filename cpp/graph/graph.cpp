#include "graph/graph.h"

#include <algorithm>
#include <sstream>

namespace buropt {
namespace {

/// "(1, 2, ...)", cut short where a node has a number for each of many operands.
std::string list(const std::vector<std::int64_t>& numbers) {
  constexpr std::size_t kShown = 8;
  std::string text = "(";
  for (std::size_t i = 0; i < std::min(numbers.size(), kShown); ++i) {
    text += (i > 0 ? ", " : "") + std::to_string(numbers[i]);
  }
  return text + (numbers.size() > kShown ? ", ...)" : ")");
}

}  // namespace

std::string Graph::str() const {
  std::ostringstream text;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Node& n = nodes[i];
    text << "%" << i << " = ";
    if (n.is_input()) {
      text << "input " << inputs[static_cast<std::size_t>(n.slot)].name;
    } else if (n.is_constant) {
      text << "constant";
    } else {
      const Op& record = buropt::op(n.op);
      text << record.name << "(";
      for (std::size_t k = 0; k < n.inputs.size(); ++k) {
        text << (k > 0 ? ", %" : "%") << n.inputs[k];
      }
      for (std::size_t k = 0; k < record.attributes.size(); ++k) {
        if (record.attributes[k].empty()) continue;
        text << ", " << record.attributes[k] << "=" << list(n.attributes.lists[k]);
      }
      text << ")";
    }
    text << "  " << name_of(n.type.dtype) << (n.type.csr ? " csr" : "")
         << (n.type.batched ? " batched " : " ") << n.type.shape.str() << "\n";
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    text << output_names[i] << " = %" << outputs[i] << "\n";
  }
  return text.str();
}

}  // namespace buropt

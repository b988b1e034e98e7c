// Whether this CPU can run the core.
#pragma once

namespace buropt {

/// Throws unless the CPU has the instructions that the core was compiled to.
void check_cpu();

}  // namespace buropt

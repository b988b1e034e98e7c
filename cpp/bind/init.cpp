// The entry of the extension module. It is compiled for any CPU (CMakeLists.txt), since it runs
// before this one is known to have the instructions of the rest.
#include "bind/cpu.h"
#include "bind/topics.h"

NB_MODULE(_core, m) {
  buropt::check_cpu();
  buropt::bind_all(m);
}

// buropt._core: the compiled core as Python sees it.
#include <nanobind/nanobind.h>

#include "base/error.h"
#include "base/pool.h"
#include "bind/numpy.h"
#include "bind/slots.h"
#include "bind/topics.h"

namespace nb = nanobind;

namespace buropt {

void set_python_error(const Error& error) {
  PyObject* type = PyExc_ValueError;
  switch (error.kind()) {
    case ErrorKind::value:
      type = PyExc_ValueError;
      break;
    case ErrorKind::type:
      type = PyExc_TypeError;
      break;
    case ErrorKind::index:
      type = PyExc_IndexError;
      break;
  }
  PyErr_SetString(type, error.what());
}

}  // namespace buropt

NB_MODULE(_core, m) {
  m.doc() = "The compiled core of buropt; use the names in buropt itself.";
#ifndef BUROPT_CHECKED
  // A traceback that outlives the interpreter is no reason to alarm users.
  nb::set_leak_warnings(false);
#endif
  buropt::import_numpy();
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const buropt::Error& error) {
      buropt::set_python_error(error);
    }
  });
  m.def("default_threads", &buropt::default_threads,
        "Threads that this process may use: BUROPT_NUM_THREADS, or its CPU affinity and quota.");
  buropt::bind_graph(m);
  buropt::bind_evaluator(m);
  buropt::bind_bound_call(m);
  buropt::bind_quick_method(m);
  buropt::bind_query(m);
  buropt::bind_function(m);
  buropt::bind_quick_call(m);
  buropt::bind_compress(m);
  buropt::bind_data(m);
  buropt::bind_inner(m);
  buropt::bind_hessians(m);
  buropt::bind_worker_entries(m);
  buropt::bind_general_loops(m);
  buropt::bind_value(m);
}

// What is in buropt._core, the compiled core as Python sees it.
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

void bind_all(nb::module_& m) {
  m.doc() = "The compiled core of buropt; use the names in buropt itself.";
#ifndef BUROPT_CHECKED
  // A traceback that outlives the interpreter is no reason to alarm users.
  nb::set_leak_warnings(false);
#endif
  import_numpy();
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const Error& error) {
      set_python_error(error);
    }
  });
  m.def("default_threads", &default_threads,
        "Threads that this process may use: BUROPT_NUM_THREADS, or its CPU affinity and quota.");
  bind_graph(m);
  bind_builder(m);
  bind_primitives(m);
  bind_samples(m);
  bind_evaluator(m);
  bind_bound_call(m);
  bind_quick_method(m);
  bind_query(m);
  bind_function(m);
  bind_quick_call(m);
  bind_random(m);
  bind_compress(m);
  bind_data(m);
  bind_inner(m);
  bind_hessians(m);
  bind_triangles(m);
  bind_worker_entries(m);
  bind_general_loops(m);
  bind_value(m);
}

}  // namespace buropt

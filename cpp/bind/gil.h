// Computing without Python's global lock.
#pragma once

#include <Python.h>
#include <unistd.h>

#include <exception>
#include <mutex>

namespace buropt {

/// Takes the lock back. When the interpreter has begun to shut down, Python ends the thread
/// instead, by unwinding its stack, which C++ code above must not see: the thread then waits for
/// the end of the process.
inline void take_gil_back(PyThreadState* state) {
  try {
    PyEval_RestoreThread(state);
  } catch (...) {
    for (;;) pause();
  }
}

/// Calls f while other Python threads run.
template <class F>
void without_gil(const F& f) {
  PyThreadState* const state = PyEval_SaveThread();
  std::exception_ptr error;
  try {
    f();
  } catch (...) {
    error = std::current_exception();
  }
  take_gil_back(state);
  if (error) std::rethrow_exception(error);
}
/// The same for an f that is not for several threads at once.
template <class F>
void without_gil(std::mutex& mutex, const F& f) {
  without_gil([&] {
    const std::lock_guard lock(mutex);
    f();
  });
}

}  // namespace buropt

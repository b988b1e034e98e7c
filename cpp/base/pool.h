// Thread pool: created on first use, rebuilt in a forked child, the only global state of the core.
//
// run() hands out task indices 0..n-1. Every thread begins with a share of neighbours, so that in
// the next call it finds in its cache what it worked on in this one, and helps others when it is
// done. Which thread takes which task is left to chance then, so a task may only write what belongs
// to its index; that is what makes results the same for any number of threads. The caller works
// too. After a call the workers wait busily for a moment before they sleep, since an optimizer's
// next call follows at once.
#pragma once

#include <cstdint>

namespace buropt {

/// Threads that this process may use: BUROPT_NUM_THREADS when set, otherwise the smaller of the
/// CPU affinity and the cgroup's CPU quota, at least 1.
int default_threads();

class Pool {
 public:
  /// A task gets its index and the index of the executing thread (0..threads-1).
  using Task = void (*)(void* context, std::int64_t task, int thread);

  /// Runs tasks 0..n-1 on at most `threads` threads, the caller included; returns when all are
  /// done. Tasks must not throw. Calls from several Python threads take turns; a call from within a
  /// task runs in place.
  static void run(std::int64_t n, int threads, Task task, void* context);

  template <class F>
  static void run(std::int64_t n, int threads, const F& f) {
    const Task task = [](void* context, std::int64_t i, int thread) {
      (*static_cast<const F*>(context))(i, thread);
    };
    run(n, threads, task, const_cast<F*>(&f));
  }
};

}  // namespace buropt

#include "base/pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

#include "base/error.h"

#if defined(__x86_64__) || defined(__i386__)
#define BUROPT_PAUSE() __builtin_ia32_pause()
#else
#define BUROPT_PAUSE() std::this_thread::yield()
#endif

namespace buropt {
namespace {

constexpr int kMaxThreads = 256;
/// How long a thread waits busily before it sleeps or gives way: longer than an optimizer's step
/// takes between two calls, since waking a sleeping thread costs about as much.
constexpr std::chrono::microseconds kBusyWait{200};

/// Waits busily until ready() or the time is over; says whether it became ready.
template <class Ready>
bool wait_busily(const Ready& ready) {
  const auto end = std::chrono::steady_clock::now() + kBusyWait;
  do {
    for (int turn = 0; turn < 64; ++turn) {
      if (ready()) return true;
      BUROPT_PAUSE();
    }
  } while (std::chrono::steady_clock::now() < end);
  return ready();
}

int affinity_threads() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

/// The cgroup's CPU quota rounded up, or kMaxThreads without one.
int quota_threads() {
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  using File = std::unique_ptr<std::FILE, Close>;
  double quota = -1;
  double period = 0;
  if (File v2{std::fopen("/sys/fs/cgroup/cpu.max", "r")}) {
    if (std::fscanf(v2.get(), "%lf %lf", &quota, &period) != 2) quota = -1;  // "max 100000"
  } else {
    File q{std::fopen("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "r")};
    File p{std::fopen("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "r")};
    if (!q || !p || std::fscanf(q.get(), "%lf", &quota) != 1 ||
        std::fscanf(p.get(), "%lf", &period) != 1) {
      quota = -1;
    }
  }
  if (quota <= 0 || period <= 0) return kMaxThreads;
  return std::max(1, static_cast<int>((quota + period - 1) / period));
}

thread_local bool inside_task = false;

/// One set of worker threads and the job they work on.
class Crew {
 public:
  explicit Crew(int workers) {
    for (int i = 0; i < workers; ++i) threads_.emplace_back([this, i] { work(i + 1); });
  }
  ~Crew() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
      generation_.fetch_add(1, std::memory_order_release);
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  int size() const { return static_cast<int>(threads_.size()) + 1; }

  void run(std::int64_t n, int threads, Pool::Task task, void* context) {
    n_ = n;
    task_ = task;
    context_ = context;
    members_ = threads;
    next_.store(0, std::memory_order_relaxed);
    busy_.store(static_cast<int>(threads_.size()), std::memory_order_relaxed);
    {
      const std::lock_guard lock(mutex_);
      generation_.fetch_add(1, std::memory_order_release);
    }
    if (sleeping_.load() > 0) wake_.notify_all();
    take_tasks(0);
    const auto done = [this] { return busy_.load(std::memory_order_acquire) == 0; };
    while (!wait_busily(done)) std::this_thread::yield();  // more threads than CPUs
  }

 private:
  void take_tasks(int thread) {
    for (;;) {
      const std::int64_t task = next_.fetch_add(1, std::memory_order_relaxed);
      if (task >= n_) return;
      task_(context_, task, thread);
    }
  }

  void work(int thread) {
    inside_task = true;
    std::uint64_t seen = 0;
    for (;;) {
      const auto called = [&] { return generation_.load(std::memory_order_acquire) != seen; };
      if (!wait_busily(called)) {
        std::unique_lock lock(mutex_);
        sleeping_.fetch_add(1);
        wake_.wait(lock, called);
        sleeping_.fetch_sub(1);
      }
      seen = generation_.load(std::memory_order_acquire);
      if (stop_) return;
      if (thread < members_) take_tasks(thread);
      busy_.fetch_sub(1, std::memory_order_release);
    }
  }

  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<std::uint64_t> generation_{0};
  std::atomic<std::int64_t> next_{0};
  std::atomic<int> busy_{0};
  std::atomic<int> sleeping_{0};
  bool stop_ = false;
  std::int64_t n_ = 0;
  int members_ = 0;
  Pool::Task task_ = nullptr;
  void* context_ = nullptr;
};

/// The crew and the lock that lets one job at a time use it. In a forked child the threads do
/// not exist and the lock may be held for ever, so the child abandons both and starts anew.
struct Global {
  std::mutex mutex;
  std::unique_ptr<Crew> crew;
};

alignas(Global) unsigned char storage[sizeof(Global)];
Global* global = nullptr;
std::once_flag once;

void start_global() { global = new (storage) Global; }

void child_after_fork() {
  if (global == nullptr) return;
  start_global();  // the old crew's threads did not survive; its few bytes are left behind
  inside_task = false;
}

void stop_at_exit() {
  if (global != nullptr) global->crew.reset();
}

}  // namespace

int default_threads() {
  if (const char* text = std::getenv("BUROPT_NUM_THREADS"); text != nullptr && *text != '\0') {
    char* end = nullptr;
    errno = 0;
    const long count = std::strtol(text, &end, 10);
    if (errno != 0 || *end != '\0' || count < 1 || count > kMaxThreads) {
      raise(ErrorKind::value,
            "BUROPT_NUM_THREADS must be a whole number from 1 to %d, got '%s'; unset it to use all "
            "CPUs of this process",
            kMaxThreads, text);
    }
    return static_cast<int>(count);
  }
  return std::min({affinity_threads(), quota_threads(), kMaxThreads});
}

void Pool::run(std::int64_t n, int threads, Task task, void* context) {
  const int members =
      static_cast<int>(std::min<std::int64_t>(n, std::clamp(threads, 1, kMaxThreads)));
  if (members <= 1 || inside_task) {
    for (std::int64_t i = 0; i < n; ++i) task(context, i, 0);
    return;
  }
  std::call_once(once, [] {
    start_global();
    pthread_atfork(nullptr, nullptr, child_after_fork);
    std::atexit(stop_at_exit);
  });
  const std::lock_guard lock(global->mutex);
  if (!global->crew || global->crew->size() < members) {
    global->crew.reset();
    global->crew = std::make_unique<Crew>(members - 1);
  }
  inside_task = true;
  global->crew->run(n, members, task, context);
  inside_task = false;
}

}  // namespace buropt

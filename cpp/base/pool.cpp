#include "base/pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <system_error>
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

/// CPUs that one cgroup's quota amounts to, rounded up, or kMaxThreads without a quota.
int quota_threads(const std::string& quota_file, const std::string& period_file) {
  std::ifstream quota_stream(quota_file);
  double quota = -1;
  double period = 0;
  if (!(quota_stream >> quota)) return kMaxThreads;  // no such file, or "max 100000"
  if (period_file.empty()) {
    quota_stream >> period;
  } else {
    std::ifstream(period_file) >> period;
  }
  if (quota <= 0 || period <= 0) return kMaxThreads;
  return std::max(1, static_cast<int>(std::min<double>(kMaxThreads, std::ceil(quota / period))));
}

/// The smallest quota of this process's cgroup and those above it.
int quota_threads() {
  const std::string root = "/sys/fs/cgroup";
  int threads = quota_threads(root + "/cpu/cpu.cfs_quota_us", root + "/cpu/cpu.cfs_period_us");
  std::string path;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (line.starts_with("0::")) path = line.substr(3);  // the unified hierarchy
  }
  for (;;) {
    threads = std::min(threads, quota_threads(root + path + "/cpu.max", ""));
    if (path.empty()) return threads;
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
}

thread_local bool inside_task = false;

/// One set of worker threads and the job they work on.
class Crew {
 public:
  /// Starts up to this many threads: fewer when the system refuses more.
  explicit Crew(int workers) : shares_(static_cast<std::size_t>(workers) + 1) {
    try {
      for (int i = 1; i <= workers; ++i) threads_.emplace_back([this, i] { work(i); });
    } catch (const std::system_error&) {
      // The number of threads never changes a result, so those that started will do.
    }
  }
  ~Crew() {
    publish(0);
    for (std::thread& thread : threads_) thread.join();
  }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  /// Threads, the caller included.
  int size() const { return static_cast<int>(threads_.size()) + 1; }

  void run(std::int64_t n, int members, Pool::Task task, void* context) {
    task_ = task;
    context_ = context;
    members_ = members;
    for (int thread = 0; thread < members; ++thread) {
      Share& share = shares_[static_cast<std::size_t>(thread)];
      share.next.store(n * thread / members, std::memory_order_relaxed);
      share.end = n * (thread + 1) / members;
    }
    busy_.store(members - 1, std::memory_order_relaxed);
    publish(members);
    take_tasks(0);
    const auto done = [this] { return busy_.load(std::memory_order_acquire) == 0; };
    while (!wait_busily(done)) std::this_thread::yield();  // more threads than CPUs
  }

 private:
  static constexpr std::uint64_t kMembers = 512;  // more than kMaxThreads

  /// The tasks that a thread begins with.
  struct alignas(64) Share {
    std::atomic<std::int64_t> next{0};
    std::int64_t end = 0;
  };

  /// Starts a call of threads 0..members-1; 0 members: the end. The number travels in the counter
  /// of calls, so that a thread that has no part in a call touches nothing of it.
  void publish(int members) {
    {
      const std::lock_guard lock(mutex_);
      const std::uint64_t calls = call_.load(std::memory_order_relaxed) / kMembers + 1;
      call_.store(calls * kMembers + static_cast<std::uint64_t>(members),
                  std::memory_order_release);
    }
    if (sleeping_.load() > 0) wake_.notify_all();
  }

  void take_tasks(int thread) {
    for (int k = 0; k < members_; ++k) {
      Share& share = shares_[static_cast<std::size_t>((thread + k) % members_)];
      for (;;) {
        const std::int64_t task = share.next.fetch_add(1, std::memory_order_relaxed);
        if (task >= share.end) break;
        task_(context_, task, thread);
      }
    }
  }

  void work(int thread) {
    inside_task = true;
    std::uint64_t seen = 0;
    for (;;) {
      const auto called = [&] { return call_.load(std::memory_order_acquire) != seen; };
      // A thread that had no part in the last call is not expected in the next one either.
      const bool is_member = seen % kMembers > static_cast<std::uint64_t>(thread);
      if (!(is_member && wait_busily(called))) {
        std::unique_lock lock(mutex_);
        sleeping_.fetch_add(1);
        wake_.wait(lock, called);
        sleeping_.fetch_sub(1);
      }
      seen = call_.load(std::memory_order_acquire);
      const std::uint64_t members = seen % kMembers;
      if (members == 0) return;
      if (static_cast<std::uint64_t>(thread) >= members) continue;
      take_tasks(thread);
      busy_.fetch_sub(1, std::memory_order_release);
    }
  }

  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<std::uint64_t> call_{0};
  std::atomic<int> busy_{0};
  std::atomic<int> sleeping_{0};
  std::vector<Share> shares_;
  int members_ = 0;
  Pool::Task task_ = nullptr;
  void* context_ = nullptr;
};

/// The crew and the lock that lets one job at a time use it. In a forked child the threads do
/// not exist and the lock may be held for ever, so the child abandons both and starts anew.
struct Global {
  std::mutex mutex;
  std::unique_ptr<Crew> crew;
  int wanted = 0;  ///< threads that the crew was made for; it may have got fewer
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

/// Lets the threads end before static objects go. If another thread is still computing, they stay.
void stop_at_exit() {
  if (global == nullptr) return;
  const std::unique_lock lock(global->mutex, std::try_to_lock);
  if (!lock.owns_lock()) return;
  global->crew.reset();
  global->wanted = 0;
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
  if (global->wanted < members) {
    global->crew.reset();
    global->crew = std::make_unique<Crew>(members - 1);
    global->wanted = members;
  }
  inside_task = true;
  global->crew->run(n, std::min(members, global->crew->size()), task, context);
  inside_task = false;
}

}  // namespace buropt

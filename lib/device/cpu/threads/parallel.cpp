#include "device/cpu/threads/parallel.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <memory>
#include <system_error>
#include <thread>
#include <vector>

#include "base/error.hpp"

namespace lockstep::cpu {
namespace {

// Waits until `word` differs from `old`. Polls for about 160 microseconds (Zen 3), yielding the core, then sleeps.
void await_change(const std::atomic<std::uint32_t>& word, std::uint32_t old) {
  constexpr int looks = 64;
  constexpr int yields = 200;
  for (int yield = 0; yield < yields; ++yield) {
    for (int look = 0; look < looks; ++look) {
      if (word.load(std::memory_order_acquire) != old) return;
    }
    sched_yield();
  }
  word.wait(old, std::memory_order_acquire);
}

// Sets `word`, and wakes the thread that may sleep until it changes. The store must be sequentially consistent: GCC
// 12's notify_one() wakes only if it then reads that a thread waits, and x86 may read that before it makes a weaker
// store visible. Then the other thread sleeps for good.
void change(std::atomic<std::uint32_t>& word, std::uint32_t value) {
  word.store(value, std::memory_order_seq_cst);
  word.notify_one();
}

struct Job {
  void (*run)(void* data, int thread);
  void* data;
};

// A helper thread with a fixed number. Jobs and counters are on separate cache lines.
class Helper {
 public:
  explicit Helper(int number) : number_(number), thread_([this] { work(); }) {}
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;
  ~Helper() {
    start({nullptr, nullptr});
    thread_.join();
  }

  void start(const Job& job) {
    job_ = job;
    change(ordered_, ++orders_);
  }
  void finish() const {
    for (std::uint32_t done = done_.load(std::memory_order_acquire); done != orders_;
         done = done_.load(std::memory_order_acquire)) {
      await_change(done_, done);
    }
  }

 private:
  void work() {
    for (std::uint32_t done = 0;;) {
      await_change(ordered_, done);
      if (job_.run == nullptr) return;
      job_.run(job_.data, number_);
      change(done_, ++done);
    }
  }

  int number_;
  std::uint32_t orders_ = 0;  // jobs started so far
  alignas(64) Job job_{};
  std::atomic<std::uint32_t> ordered_ = 0;           // orders_, for the helper
  alignas(64) std::atomic<std::uint32_t> done_ = 0;  // jobs finished so far
  std::thread thread_;                               // last: uses the other members
};

// The rest of a thread's share: [next, last), in runs of pieces. Taking a run increments `next`.
struct alignas(64) Share {
  std::atomic<std::int64_t> next;
  std::int64_t last;
};

struct SharedLoop {
  PiecesBody run;
  void* data;
  std::int64_t count, at_once;
  Share* shares;
  int threads;

  // Its own share first, then the rest of the others' shares.
  void work(int thread) const {
    for (int i = 0; i < threads; ++i) {
      Share& share = shares[(thread + i) % threads];
      while (share.next.load(std::memory_order_relaxed) < share.last) {
        const std::int64_t taken = share.next.fetch_add(1, std::memory_order_relaxed);
        if (taken < share.last) run(data, thread, taken * at_once, std::min(count, (taken + 1) * at_once));
      }
    }
  }
};

class Team {
 public:
  void run(int threads, const Job& job) {
    grow(threads - 1);
    assert(!is_running_);
    is_running_ = true;
    for (int i = 0; i < threads - 1; ++i) helper(i).start(job);
    job.run(job.data, 0);
    for (int i = 0; i < threads - 1; ++i) helper(i).finish();
    is_running_ = false;
  }

  void run_pieces(int max_threads, std::int64_t count, std::int64_t at_once, PiecesBody body, void* data) {
    const std::int64_t runs = (count + at_once - 1) / at_once;
    const auto threads = static_cast<int>(std::min<std::int64_t>(max_threads, runs));
    SharedLoop loop{body, data, count, at_once, shares(threads), threads};
    for (int i = 0; i < threads; ++i) {
      loop.shares[i].next.store(runs * i / threads, std::memory_order_relaxed);
      loop.shares[i].last = runs * (i + 1) / threads;
    }
    run(threads, {[](void* shared, int thread) { static_cast<const SharedLoop*>(shared)->work(thread); }, &loop});
  }

 private:
  Helper& helper(int i) const { return *helpers_[static_cast<std::size_t>(i)]; }

  void grow(int count) {
    try {
      while (std::ssize(helpers_) < count) {
        helpers_.push_back(std::make_unique<Helper>(static_cast<int>(helpers_.size()) + 1));
      }
    } catch (const std::system_error& error) {
      throw Error(
          fmt::format("cannot start compute thread {} of {}: {}. Lower --threads, or raise the process limit (ulimit "
                      "-u, or that of the job's cgroup).",
                      helpers_.size() + 2, count + 1, error.code().message()));
    }
  }

  Share* shares(int count) {
    if (share_count_ < count) shares_ = std::make_unique<Share[]>(static_cast<std::size_t>(count));
    share_count_ = std::max(share_count_, count);
    return shares_.get();
  }

  std::vector<std::unique_ptr<Helper>> helpers_;
  std::unique_ptr<Share[]> shares_;
  int share_count_ = 0;
  bool is_running_ = false;
};

thread_local Team team;
thread_local int threads_of_loops = 1;

}  // namespace

int loop_threads() { return threads_of_loops; }

void set_loop_threads(int threads) { threads_of_loops = std::max(threads, 1); }

void run_on_threads(int threads, void (*run)(void* data, int thread), void* data) { team.run(threads, {run, data}); }

void run_pieces(int threads, std::int64_t count, std::int64_t at_once, PiecesBody run, void* data) {
  team.run_pieces(threads, count, at_once, run, data);
}

}  // namespace lockstep::cpu

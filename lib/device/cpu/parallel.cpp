#include "device/cpu/parallel.hpp"

#include <sched.h>

#include <atomic>
#include <cassert>
#include <memory>
#include <system_error>
#include <thread>
#include <vector>

#include "base/error.hpp"

namespace lockstep::cpu {
namespace {

// Waits until `word` is no longer `old`: for about 160 microseconds (Zen 3) awake, giving way to whoever wants the
// core, then asleep.
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

struct Job {
  void (*run)(void* data, int share);
  void* data;
};

// One thread that computes the same share of every job it is given. Job and words lie on cache lines of their own.
class Helper {
 public:
  explicit Helper(int share) : share_(share), thread_([this] { work(); }) {}
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;
  ~Helper() {
    start({nullptr, nullptr});
    thread_.join();
  }

  void start(const Job& job) {
    job_ = job;
    ordered_.store(++orders_, std::memory_order_release);
    ordered_.notify_one();
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
      job_.run(job_.data, share_);
      done_.store(++done, std::memory_order_release);
      done_.notify_one();
    }
  }

  int share_;
  std::uint32_t orders_ = 0;
  alignas(64) Job job_{};
  std::atomic<std::uint32_t> ordered_ = 0;
  alignas(64) std::atomic<std::uint32_t> done_ = 0;
  std::thread thread_;  // last: it uses the others
};

class Team {
 public:
  void run(int shares, const Job& job) {
    grow(shares - 1);
    assert(!is_running_);
    is_running_ = true;
    for (int i = 0; i < shares - 1; ++i) helper(i).start(job);
    job.run(job.data, 0);
    for (int i = 0; i < shares - 1; ++i) helper(i).finish();
    is_running_ = false;
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
          fmt::format("cannot start thread {} of {} to compute on: {}. Fewer --threads, or a higher limit on "
                      "processes (ulimit -u, or that of the job's cgroup)?",
                      helpers_.size() + 2, count + 1, error.code().message()));
    }
  }

  std::vector<std::unique_ptr<Helper>> helpers_;
  bool is_running_ = false;
};

thread_local Team team;
thread_local int threads_of_loops = 1;

}  // namespace

int loop_threads() { return threads_of_loops; }

void set_loop_threads(int threads) { threads_of_loops = std::max(threads, 1); }

void run_shares(int shares, void (*run)(void* data, int share), void* data) { team.run(shares, {run, data}); }

}  // namespace lockstep::cpu

#include "files/checkpoint/checkpoint_writer.hpp"

#include <algorithm>
#include <cassert>
#include <new>
#include <utility>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/log.hpp"

namespace lockstep {

template <typename Write>
void CheckpointWriter::attempt(std::int64_t step, const Write& write) {
  const Stopwatch watch;
  record_.failure.clear();
  try {
    record_.path = write();
    record_.step = step;
    longest_seconds_ = std::max(longest_seconds_.load(), watch.seconds());
  } catch (const Error& error) {
    if (error.failure() == Failure::out_of_step) throw;
    record_.failure = error.what();
  } catch (const std::bad_alloc&) {
    record_.failure = "out of memory: its bytes do not fit. Leave more memory free on the node.";
  }
  if (!record_.failure.empty()) {
    ++record_.failures;
    log::warning("the checkpoint of step {} was not written, but the training continues: {}", step, record_.failure);
  }
}

void CheckpointWriter::start(Checkpoint checkpoint) {
  assert(is_idle());
  wait();
  is_idle_ = false;
  thread_ = std::thread([this, moved = std::move(checkpoint)]() mutable {
    attempt(moved.state.progress.step, [&] { return folder_.write(std::move(moved)); });
    is_idle_.store(true, std::memory_order_release);
  });
}

void CheckpointWriter::write_now(Checkpoint checkpoint, const WeightSync& sync) {
  assert(is_idle());
  attempt(checkpoint.state.progress.step, [&] { return folder_.write(std::move(checkpoint), sync); });
}

void CheckpointWriter::wait() {
  if (thread_.joinable()) thread_.join();
}

}  // namespace lockstep

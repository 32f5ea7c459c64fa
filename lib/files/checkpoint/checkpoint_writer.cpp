#include "files/checkpoint/checkpoint_writer.hpp"

#include <algorithm>
#include <cassert>
#include <new>
#include <utility>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/log.hpp"

namespace lockstep {

void CheckpointWriter::start(Checkpoint checkpoint) {
  assert(is_idle());
  wait();
  is_idle_ = false;
  thread_ = std::thread([this, moved = std::move(checkpoint)]() mutable { write(std::move(moved)); });
}

void CheckpointWriter::wait() {
  if (thread_.joinable()) thread_.join();
}

void CheckpointWriter::write(Checkpoint checkpoint) {
  const Stopwatch watch;
  const std::int64_t step = checkpoint.state.progress.step;
  record_.failure.clear();
  try {
    record_.path = folder_.write(std::move(checkpoint));
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
  is_idle_.store(true, std::memory_order_release);
}

}  // namespace lockstep

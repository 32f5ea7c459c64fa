#include "files/checkpoint/checkpoint_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <new>
#include <utility>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/log.hpp"

namespace lockstep {

std::string write_or_warn(const std::string& what, const std::function<void()>& write) {
  std::string failure;
  try {
    write();
    return "";
  } catch (const Error& error) {
    if (error.failure() == Failure::out_of_step) throw;
    failure = error.what();
  } catch (const std::bad_alloc&) {
    failure = "out of memory: its bytes do not fit. Leave more memory free on the node.";
  }
  log::warning("{} was not written, but the training continues: {}", what, failure);
  return failure;
}

void CheckpointWriter::attempt(std::int64_t step, const std::function<std::filesystem::path()>& write) {
  const Stopwatch watch;
  record_.failure = write_or_warn(fmt::format("the checkpoint of step {}", step), [&] { record_.path = write(); });
  if (!record_.failure.empty()) {
    ++record_.failures;
    return;
  }
  record_.step = step;
  longest_seconds_ = std::max(longest_seconds_.load(), watch.seconds());
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

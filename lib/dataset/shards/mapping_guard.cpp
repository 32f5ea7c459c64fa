#include "dataset/shards/mapping_guard.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <functional>
#include <mutex>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/text/printable.hpp"
#include "runtime/failure/failure_report.hpp"

namespace lockstep {
namespace {

// A signal handler can only access globals. Guards form a linked list, which the handler only reads.
std::mutex list_mutex;
std::atomic<MappingGuard*> first_guard = nullptr;
struct sigaction handler_before;

void on_bus_error(int signal, siginfo_t* info, void* /*context*/) {
  for (const MappingGuard* guard = first_guard; guard != nullptr; guard = guard->next()) {
    if (guard->covers(info->si_addr)) guard->end_program();
  }
  // Restores the previous behavior: the faulting instruction runs again; a signal that was sent is raised again.
  sigaction(signal, &handler_before, nullptr);
  const bool was_sent = info->si_code <= 0;
  if (was_sent) raise(signal);
}

void install_handler_once() {
  static const int installed = [] {
    struct sigaction action {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    return sigaction(SIGBUS, &action, &handler_before);
  }();
  static_cast<void>(installed);
}

}  // namespace

MappingGuard::MappingGuard(const std::filesystem::path& shard, std::span<const std::byte> mapped)
    : mapped_(mapped),
      sentence_(fmt::format("shard '{}' became shorter while it was in use. Samples in it are lost. Restore it, or run "
                            "make_shards again.",
                            shard.string())),
      line_(fmt::format("{} {}\n", log::prefix(), printable(sentence_))) {
  install_handler_once();
  const std::lock_guard lock(list_mutex);
  next_ = first_guard;  // NOLINT(cppcoreguidelines-prefer-member-initializer): under the lock
  first_guard = this;
}

MappingGuard::~MappingGuard() {
  const std::lock_guard lock(list_mutex);
  if (first_guard == this) {
    first_guard = next_;
    return;
  }
  MappingGuard* before = first_guard;
  while (before->next_ != this) before = before->next_;
  before->next_ = next_;
}

bool MappingGuard::covers(const void* address) const {
  const std::less<> below;
  return !below(address, mapped_.data()) && below(address, mapped_.data() + mapped_.size());
}

void MappingGuard::end_program() const {
  constexpr int code = static_cast<int>(Failure::bad_data);
  if (failure_report::write({code, SIGBUS, sentence_})) {
    static_cast<void>(!write(STDERR_FILENO, line_.data(), line_.size()));
  }
  _exit(code);
}

}  // namespace lockstep

#include "support/simulated_gpu/nccl_exchange.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <iterator>

namespace lockstep::simulated {
namespace {

// In the bytes of a ncclUniqueId: where the memory is.
struct Id {
  int process;
  int file;
};

// One that has ended and that nobody has waited for counts as dead.
bool is_running(int process) {
  std::ifstream status(fmt::format("/proc/{}/stat", process));
  const std::string text{std::istreambuf_iterator<char>(status), {}};
  const std::size_t name_end = text.rfind(')');
  return name_end != std::string::npos && name_end + 2 < text.size() && text[name_end + 2] != 'Z';
}

}  // namespace

std::size_t NcclExchange::total_bytes() { return (most_nccl_ranks * slots + 1) * most_bytes; }

std::byte* NcclExchange::map(int file) {
  void* const mapped = mmap(nullptr, total_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  return mapped == MAP_FAILED ? nullptr : static_cast<std::byte*>(mapped);
}

// The file stays open as long as the process. Its pages exist once they are written.
ncclUniqueId NcclExchange::make_id() {
  const Id made{getpid(), memfd_create("nccl", MFD_CLOEXEC)};
  static_assert(sizeof(Shared) <= most_bytes);
  ncclUniqueId id{};
  if (made.file >= 0 && ftruncate(made.file, static_cast<off_t>(total_bytes())) == 0) {
    std::memcpy(id.internal, &made, sizeof made);
  }
  return id;
}

NcclExchange* NcclExchange::join(const ncclUniqueId& id, const NcclRank& own, int device) {
  Id made{};
  std::memcpy(&made, id.internal, sizeof made);
  // careful-open: memory of this test's processes
  const int file = open(fmt::format("/proc/{}/fd/{}", made.process, made.file).c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return nullptr;
  std::byte* const memory = map(file);
  close(file);
  return memory == nullptr ? nullptr : new NcclExchange(memory, own, device);
}

// The file begins with zeros: no operation, and absent ranks.
NcclExchange::NcclExchange(std::byte* memory, const NcclRank& own, int device)
    : memory_(memory), shared_(reinterpret_cast<Shared*>(memory)), own_(own) {
  at(own.rank).process = getpid();
  at(own.rank).device = device;
  set_life(Life::joined);
}

bool NcclExchange::all_have_joined() const {
  for (int rank = 0; rank < ranks(); ++rank) {
    if (life(rank) == Life::absent) return false;
  }
  return true;
}

bool NcclExchange::shares_devices() const {
  for (int rank = 0; rank < ranks(); ++rank) {
    for (int other = 0; other < rank; ++other) {
      if (at(rank).device == at(other).device) return true;
    }
  }
  return false;
}

std::byte* NcclExchange::slot_of(int rank, std::uint64_t sequence) const {
  const std::size_t slot = static_cast<std::size_t>(rank) * slots + sequence % slots;
  return memory_ + (slot + 1) * most_bytes;
}

std::uint64_t NcclExchange::begun(int rank) const { return at(rank).begun.load(std::memory_order_acquire); }
std::uint64_t NcclExchange::ended(int rank) const { return at(rank).ended.load(std::memory_order_acquire); }
Life NcclExchange::life(int rank) const { return at(rank).life.load(std::memory_order_acquire); }
void NcclExchange::set_life(Life life) { at(rank()).life.store(life, std::memory_order_release); }

bool NcclExchange::may_begin() const {
  for (int rank = 0; rank < ranks(); ++rank) {
    if (ended(rank) + slots <= begun(own_.rank)) return false;
  }
  return true;
}

void NcclExchange::begin(const Operation& operation, const std::byte* data, std::size_t bytes) {
  const std::uint64_t sequence = begun(rank());
  if (bytes > 0) std::memcpy(slot_of(rank(), sequence), data, bytes);
  at(rank()).operations[sequence % slots] = operation;
  at(rank()).begun.store(sequence + 1, std::memory_order_release);
}

const Operation& NcclExchange::operation_of(int rank) const { return at(rank).operations[ended(own_.rank) % slots]; }
const std::byte* NcclExchange::data_of(int rank) const { return slot_of(rank, ended(own_.rank)); }
void NcclExchange::end() { at(rank()).ended.fetch_add(1, std::memory_order_release); }

bool NcclExchange::has_died(int rank) {
  constexpr std::chrono::milliseconds interval{50};
  if (const auto now = std::chrono::steady_clock::now(); now - looked_at_ > interval) {
    looked_at_ = now;
    // A rank that has ended may end its process, so its life is read last.
    for (int one = 0; one < ranks(); ++one) {
      has_died_.at(static_cast<std::size_t>(one)) = !is_running(at(one).process) && life(one) == Life::joined;
    }
  }
  return has_died_.at(static_cast<std::size_t>(rank));
}

}  // namespace lockstep::simulated

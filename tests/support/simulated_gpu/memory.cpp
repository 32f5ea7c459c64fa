#include "support/simulated_gpu/memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace lockstep::simulated {
namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t poison_bytes = std::size_t{16} << 20;

std::size_t rounded_up(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

// A file of bytes 0xFF. Private mappings of it share its pages until they are written.
int poison_file() {
  static const int file = [] {
    const int made = memfd_create("poison", MFD_CLOEXEC);
    if (made < 0 || ftruncate(made, poison_bytes) != 0) return -1;
    void* const all = mmap(nullptr, poison_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, made, 0);
    if (all == MAP_FAILED) return -1;
    std::memset(all, 0xFF, poison_bytes);
    munmap(all, poison_bytes);
    return made;
  }();
  return file;
}

bool fill_with_poison(std::byte* begin, std::size_t bytes, int access) {
  for (std::size_t at = 0; at < bytes; at += poison_bytes) {
    const std::size_t part = std::min(poison_bytes, bytes - at);
    if (mmap(begin + at, part, access, MAP_PRIVATE | MAP_FIXED, poison_file(), 0) == MAP_FAILED) return false;
  }
  return true;
}

}  // namespace

std::byte* Memory::allocate(std::size_t bytes, Place place, int device, std::size_t offset) {
  const std::size_t usable = rounded_up(bytes + offset, page);
  void* const mapped = mmap(nullptr, usable + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  auto* const begin = static_cast<std::byte*>(mapped);
  const int access = place == Place::device ? PROT_NONE : PROT_READ | PROT_WRITE;
  if (!fill_with_poison(begin, usable, access)) return nullptr;
  std::byte* const data = begin + usable - rounded_up(bytes + offset, 256) + offset;
  blocks_[data] = {data, bytes, place, device, begin, usable + page};
  mapped_.push_back({begin, begin + usable + page});
  return data;
}

bool Memory::free(const void* data, Place place) {
  const auto found = blocks_.find(static_cast<const std::byte*>(data));
  if (found == blocks_.end() || found->second.place != place) return false;
  const Block& block = found->second;
  if (block.mapped != nullptr) {
    constexpr int unreadable = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    static_cast<void>(mmap(block.mapped, block.mapped_bytes, PROT_NONE, unreadable, -1, 0));
  }
  blocks_.erase(found);
  return true;
}

void Memory::halve(const void* data) { blocks_.at(static_cast<const std::byte*>(data)).bytes /= 2; }

cudaError_t Memory::add_registered(std::byte* data, std::size_t bytes) {
  if (owns(data)) return cudaErrorInvalidValue;
  if (find(data) != nullptr || find(data + bytes - 1) != nullptr) return cudaErrorHostMemoryAlreadyRegistered;
  blocks_[data] = {data, bytes, Place::registered, -1, nullptr, 0};
  return cudaSuccess;
}

const Block* Memory::find(const void* address) const {
  const auto* const at = static_cast<const std::byte*>(address);
  auto next = blocks_.upper_bound(at);
  if (next == blocks_.begin()) return nullptr;
  const Block& block = std::prev(next)->second;
  return at < block.data + block.bytes ? &block : nullptr;
}

const Block* Memory::largest() const {
  const Block* best = nullptr;
  for (const auto& [data, block] : blocks_) {
    if (block.place == Place::device && (best == nullptr || block.bytes > best->bytes)) best = &block;
  }
  return best;
}

bool Memory::allows(const void* address, std::size_t bytes) const {
  const Block* const block = find(address);
  if (block == nullptr) return !owns(address);
  return static_cast<const std::byte*>(address) + bytes <= block->data + block->bytes;
}

bool Memory::is_on_device(const void* address, std::size_t bytes, int device) const {
  const Block* const block = find(address);
  return block != nullptr && block->place == Place::device && block->device == device && allows(address, bytes);
}

bool Memory::is_host(const void* address) const {
  const Block* const block = find(address);
  return block == nullptr ? !owns(address) : block->place != Place::device;
}

std::size_t Memory::used_bytes(int device) const {
  std::size_t used = 0;
  for (const auto& [data, block] : blocks_) {
    if (block.place == Place::device && block.device == device) used += block.bytes;
  }
  return used;
}

void Memory::protect(int device, int access) const {
  for (const auto& [data, block] : blocks_) {
    if (block.place != Place::device || block.device != device) continue;
    mprotect(block.mapped, block.mapped_bytes - page, access);
  }
}

void Memory::open(int device) { protect(device, PROT_READ | PROT_WRITE); }
void Memory::close(int device) { protect(device, PROT_NONE); }

bool Memory::admit(const void* address, bool is_write) {
  const Block* const block = find(address);
  if (block == nullptr || block->place != Place::device) return false;
  auto* const begin =
      const_cast<std::byte*>(static_cast<const std::byte*>(address)) - reinterpret_cast<std::uintptr_t>(address) % page;
  touched_[begin].at(is_write ? 1 : 0) = true;
  return mprotect(begin, page, is_write ? PROT_READ | PROT_WRITE : PROT_READ) == 0;
}

Traffic Memory::take_traffic() {
  Traffic traffic;
  for (const auto& [begin, how] : touched_) {
    traffic.read += how[0] ? page : 0;
    traffic.written += how[1] ? page : 0;
    mprotect(begin, page, PROT_NONE);
  }
  touched_.clear();
  return traffic;
}

bool Memory::owns(const void* address) const {
  const auto* const at = static_cast<const std::byte*>(address);
  return std::ranges::any_of(mapped_, [&](const Range& range) { return at >= range.begin && at < range.end; });
}

}  // namespace lockstep::simulated

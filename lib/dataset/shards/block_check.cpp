#include "dataset/shards/block_check.hpp"

#include <algorithm>
#include <cassert>
#include <system_error>
#include <utility>

#include "base/error.hpp"
#include "dataset/shards/hash.hpp"
#include "dataset/shards/repair_advice.hpp"

namespace lockstep {

BlockCheck::BlockCheck(std::filesystem::path path, std::span<const std::byte> file, const ShardEntry& entry,
                       std::int64_t block_bytes)
    : path_(std::move(path)),
      file_(file),
      entry_(entry),
      block_bytes_(static_cast<std::size_t>(block_bytes)),
      whole_in_(entry.block_hashes.size()) {
  assert((file.size() + block_bytes_ - 1) / block_bytes_ == whole_in_.size());
  for (std::atomic<std::int64_t>& epoch : whole_in_) epoch = -1;
}

void BlockCheck::require_whole(std::span<const std::byte> bytes, std::int64_t epoch) {
  constexpr auto relaxed = std::memory_order_relaxed;  // only the numbers are shared: the file's bytes need no ordering
  if (present_in_.load(relaxed) < epoch) {
    require_present();
    present_in_.store(epoch, relaxed);
  }
  const auto begin = static_cast<std::size_t>(bytes.data() - file_.data());
  assert(!bytes.empty() && begin + bytes.size() <= file_.size());
  const std::size_t last = (begin + bytes.size() - 1) / block_bytes_;
  for (std::size_t block = begin / block_bytes_; block <= last; ++block) {
    if (whole_in_[block].load(relaxed) >= epoch) continue;
    require_block(block);
    whole_in_[block].store(epoch, relaxed);
  }
}

std::span<const std::byte> BlockCheck::to_be_read(std::span<const std::byte> bytes, std::int64_t epoch) const {
  const auto begin = static_cast<std::size_t>(bytes.data() - file_.data());
  const std::size_t end = begin + bytes.size();
  const std::size_t first = begin / block_bytes_;
  const std::size_t last = (end - 1) / block_bytes_;
  const auto is_hashed = [&](std::size_t block) { return whole_in_[block].load(std::memory_order_relaxed) >= epoch; };
  const std::size_t from = is_hashed(first) ? begin : first * block_bytes_;
  const std::size_t to = is_hashed(last) ? end : std::min((last + 1) * block_bytes_, file_.size());
  return file_.subspan(from, to - from);
}

// A removed file stays readable for processes that have it mapped, but the next start would fail. Errors other than
// absence can be temporary, such as an unresponsive file server.
void BlockCheck::require_present() const {
  std::error_code reason;
  const std::uintmax_t size = std::filesystem::file_size(path_, reason);
  require(reason != std::errc::no_such_file_or_directory, Failure::bad_data,
          "shard '{}' was removed while it was in use: {}. {}", path_.string(), reason.message(),
          repair_advice(path_, "Restore it, or run make_shards again."));
  require(reason || size == file_.size(), Failure::bad_data,
          "shard '{}' is damaged: it has {} bytes, but manifest.json says {}. {}", path_.string(), size, file_.size(),
          repair_advice(path_, "Restore it, or run make_shards again."));
}

void BlockCheck::require_block(std::size_t block) const {
  const std::size_t begin = block * block_bytes_;
  const auto bytes = file_.subspan(begin, std::min(block_bytes_, file_.size() - begin));
  if (xxh3_64_hex(bytes) == entry_.block_hashes[block]) return;
  const std::string what =
      fmt::format("shard '{}' is damaged: block {} of {} changed", path_.string(), block, entry_.block_hashes.size());
  const std::int64_t last_whole = whole_in_[block];
  require(last_whole >= 0, Failure::bad_data, "{}. {}", what,
          repair_advice(path_, "Check the data set with make_shards verify, or run make_shards again."));
  throw Error(Failure::bad_data,
              fmt::format("{} since epoch {} first read it. What the training learned from it since then may be wrong. "
                          "{} Then resume from a checkpoint of an earlier epoch: --resume FILE.",
                          what, last_whole + 1, repair_advice(path_, "Restore it, or run make_shards again.")));
}

}  // namespace lockstep

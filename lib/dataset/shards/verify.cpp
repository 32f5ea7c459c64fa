#include "dataset/shards/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <system_error>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/log.hpp"
#include "base/text/counted.hpp"
#include "base/text/printable.hpp"
#include "dataset/shards/hash.hpp"
#include "dataset/shards/shard.hpp"
#include "dataset/split.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

std::string block_words(const ShardEntry& entry, const std::vector<std::string>& found) {
  constexpr std::size_t most_named = 4;
  std::vector<std::string> damaged;
  for (std::size_t block = 0; block < found.size(); ++block) {
    if (found[block] != entry.block_hashes[block]) damaged.push_back(fmt::format("{}", block));
  }
  if (damaged.empty()) return "its blocks are right but their hash as a whole is not";
  const std::size_t named = std::min(damaged.size(), most_named);
  const std::string more = damaged.size() > named ? fmt::format(" and {} more", damaged.size() - named) : "";
  return fmt::format("{} {}{} of {} changed", damaged.size() == 1 ? "block" : "blocks",
                     fmt::join(damaged.begin(), damaged.begin() + static_cast<std::ptrdiff_t>(named), ", "), more,
                     found.size());
}

// Why a reader refuses a shard whose bytes are those that were hashed: another program wrote it, or its manifest.
std::optional<std::string> refusal_of(const fs::path& directory, const Manifest& manifest, const ShardEntry& entry) {
  try {
    const ShardReader reader(directory, manifest, entry);
    return std::nullopt;
  } catch (const Error& error) {
    return error.what();
  }
}

std::vector<fs::path> splits_of(const fs::path& directory) {
  if (!is_absent(directory / manifest_file)) return {directory};
  std::vector<fs::path> found;
  for (const auto& split : splits) {
    if (!is_absent(directory / split.name)) found.push_back(directory / split.name);
  }
  require(!found.empty(), Failure::usage, "'{}' holds no data set: there is no {}. Make one with make_shards?",
          directory.string(), manifest_file);
  return found;
}

}  // namespace

std::optional<std::string> damage_of(const fs::path& directory, const ShardEntry& entry, std::int64_t block_bytes) {
  const fs::path path = directory / entry.file;
  // Read, not mapped: a disk that fails then gives a sentence and not a signal.
  std::string content;
  try {
    const std::size_t size = RegularFile(path).bytes();
    if (size != static_cast<std::size_t>(entry.bytes)) {
      return fmt::format("shard '{}' is damaged: it has {} bytes instead of {}", path.string(), size, entry.bytes);
    }
    content = read_file(path, static_cast<std::size_t>(entry.bytes));
  } catch (const Error& error) {
    return error.what();
  } catch (const std::system_error& reason) {
    return fmt::format("shard '{}' cannot be read: {}", path.string(), system_words(reason.code().value()));
  }
  const auto bytes = std::as_bytes(std::span(content));
  if (xxh3_128_hex(bytes) == entry.hash) return std::nullopt;
  return fmt::format("shard '{}' is damaged: {}", path.string(), block_words(entry, block_hashes(bytes, block_bytes)));
}

std::vector<std::string> find_damage(const Communicator& world, const fs::path& directory, const Manifest& manifest) {
  const auto ranks = static_cast<std::size_t>(world.size());
  std::string sentences;
  for (auto shard = static_cast<std::size_t>(world.rank()); shard < manifest.shards.size(); shard += ranks) {
    const ShardEntry& entry = manifest.shards[shard];
    std::optional<std::string> damage = damage_of(directory, entry, manifest.block_bytes);
    if (!damage) damage = refusal_of(directory, manifest, entry);
    if (damage) sentences += printable(*damage) + '\n';
  }
  std::vector<std::string> all;
  for (const std::string& lines : world.all_gather(sentences)) {
    for (std::size_t start = 0; start < lines.size();) {
      const std::size_t end = lines.find('\n', start);
      all.push_back(lines.substr(start, end - start));
      start = end + 1;
    }
  }
  std::sort(all.begin(), all.end());
  return all;
}

void verify(const Communicator& world, const fs::path& directory) {
  std::vector<std::string> damage;
  std::size_t shards = 0;
  for (const fs::path& split : splits_of(directory)) {
    const Manifest manifest = read_manifest(split);
    const std::vector<std::string> found = find_damage(world, split, manifest);
    damage.insert(damage.end(), found.begin(), found.end());
    shards += manifest.shards.size();
    log::plain(fmt::format("{}: {} with {} read again, {} damaged", printable(split.string()),
                           counted(manifest.shards.size(), "shard"), counted(manifest.samples(), "sample"),
                           found.size()));
  }
  if (world.rank() == 0) {
    for (std::size_t i = 0; i + 1 < damage.size(); ++i) log::warning(std::string_view(damage[i]));
  }
  // The last one is part of the error itself, so that whoever keeps only that has a name.
  require(damage.empty(), Failure::bad_data, "{} (damaged shards: {} of {}). Run make_shards again: it replaces them.",
          damage.empty() ? "" : damage.back(), damage.size(), shards);
}

}  // namespace lockstep

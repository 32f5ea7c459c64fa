#include "dataset/shards/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <span>
#include <system_error>
#include <utility>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/log.hpp"
#include "base/system_failure.hpp"
#include "base/text/counted.hpp"
#include "base/text/printable.hpp"
#include "dataset/shards/hash.hpp"
#include "dataset/shards/shard.hpp"
#include "dataset/split.hpp"
#include "runtime/watch/rank_status.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

std::string describe_block(const ShardEntry& entry, const std::vector<std::string>& found) {
  constexpr std::size_t max_named = 4;
  std::vector<std::string> damaged;
  for (std::size_t block = 0; block < found.size(); ++block) {
    if (found[block] != entry.block_hashes[block]) damaged.push_back(fmt::format("{}", block));
  }
  if (damaged.empty()) return "its blocks are valid, but the hash of the whole file is not";
  const std::size_t named = std::min(damaged.size(), max_named);
  const std::string more = damaged.size() > named ? fmt::format(" and {} more", damaged.size() - named) : "";
  return fmt::format("{} {}{} of {} changed", damaged.size() == 1 ? "block" : "blocks",
                     fmt::join(damaged.begin(), damaged.begin() + static_cast<std::ptrdiff_t>(named), ", "), more,
                     found.size());
}

// A problem with a shard: bad_data if its bytes are wrong, another failure if they could not be checked.
struct Fault {
  std::string message;
  Failure failure;
};

Fault unread(const fs::path& path, int error_number) {
  const bool is_missing = error_number == ENOENT || error_number == ENOTDIR || error_number == ELOOP;
  return {fmt::format("shard '{}' cannot be read: {}", path.string(), system_error_message(error_number)),
          is_missing ? Failure::bad_data : remedy_for(error_number, Access::reading).failure};
}

// Uses read() instead of a mapping, so that a failing disk gives an error and not a signal.
std::string content_of(const fs::path& path, const ShardEntry& entry, std::optional<Fault>& fault) {
  try {
    const std::size_t size = RegularFile(path).bytes();
    if (size != static_cast<std::size_t>(entry.bytes)) {
      fault = {fmt::format("shard '{}' is damaged: it has {} bytes instead of {}", path.string(), size, entry.bytes),
               Failure::bad_data};
      return "";
    }
  } catch (const Error& no_file) {
    fault = {no_file.what(), Failure::bad_data};
    return "";
  } catch (const std::system_error& reason) {
    fault = unread(path, reason.code().value());
    return "";
  }
  try {
    return read_file(path, static_cast<std::size_t>(entry.bytes));
  } catch (const Error& error) {
    fault = {error.what(), error.failure()};
    return "";
  }
}

std::optional<Fault> fault_of(const fs::path& directory, const ShardEntry& entry, std::int64_t block_bytes) {
  const fs::path path = directory / entry.file;
  std::optional<Fault> fault;
  const std::string content = content_of(path, entry, fault);
  if (fault) return fault;
  const auto bytes = std::as_bytes(std::span(content));
  if (xxh3_128_hex(bytes) == entry.hash) return std::nullopt;
  return Fault{
      fmt::format("shard '{}' is damaged: {}", path.string(), describe_block(entry, block_hashes(bytes, block_bytes))),
      Failure::bad_data};
}

// Why a reader refuses a shard with correct hashes: another program wrote the shard or its manifest.
std::optional<Fault> refusal_of(const fs::path& directory, const Manifest& manifest, const ShardEntry& entry) {
  try {
    const ShardReader reader(directory, manifest, entry);
    return std::nullopt;
  } catch (const Error& error) {
    return Fault{error.what(), error.failure()};
  }
}

// Collective. One entry per faulty shard, sorted, the same on all ranks.
std::vector<Fault> find_faults(const Communicator& world, const fs::path& directory, const Manifest& manifest) {
  const auto ranks = static_cast<std::size_t>(world.size());
  rank_status::enter(Phase::opening_data);
  std::string own;  // the failure code and the message of each fault
  for (auto shard = static_cast<std::size_t>(world.rank()); shard < manifest.shards.size(); shard += ranks) {
    const ShardEntry& entry = manifest.shards[shard];
    std::optional<Fault> fault = fault_of(directory, entry, manifest.block_bytes);
    if (!fault) fault = refusal_of(directory, manifest, entry);
    if (fault) own += static_cast<char>(fault->failure) + printable(fault->message) + '\n';
  }
  rank_status::enter(Phase::gathering);
  std::vector<Fault> all;
  for (const std::string& lines : world.all_gather(own)) {
    for (std::size_t start = 0; start < lines.size();) {
      const std::size_t end = lines.find('\n', start + 1);  // start + 1: the failure code itself may equal a newline
      all.push_back({lines.substr(start + 1, end - start - 1), static_cast<Failure>(lines[start])});
      start = end + 1;
    }
  }
  std::ranges::sort(all, {}, &Fault::message);
  return all;
}

void require_checked(const std::vector<Fault>& faults, std::size_t shards) {
  const auto checked = [](const Fault& fault) { return fault.failure == Failure::bad_data; };
  const auto unchecked = std::ranges::find_if_not(faults, checked);
  if (unchecked == faults.end()) return;
  const auto damaged = std::ranges::count_if(faults, checked);
  throw Error(unchecked->failure,
              fmt::format("{} ({} of {} shards could not be checked, {} are damaged). Run again when they can be read.",
                          unchecked->message, faults.size() - static_cast<std::size_t>(damaged), shards, damaged));
}

std::vector<fs::path> splits_of(const fs::path& directory) {
  if (!is_absent(directory / manifest_file)) return {directory};
  std::vector<fs::path> found;
  for (const auto& split : splits) {
    if (!is_absent(directory / split.name)) found.push_back(directory / split.name);
  }
  require(!found.empty(), Failure::usage, "'{}' contains no data set: {} is missing. Make one with make_shards.",
          directory.string(), manifest_file);
  return found;
}

}  // namespace

std::optional<std::string> damage_of(const fs::path& directory, const ShardEntry& entry, std::int64_t block_bytes) {
  std::optional<Fault> fault = fault_of(directory, entry, block_bytes);
  return fault ? std::optional(std::move(fault->message)) : std::nullopt;
}

std::vector<std::string> find_damage(const Communicator& world, const fs::path& directory, const Manifest& manifest) {
  std::vector<std::string> messages;
  for (Fault& fault : find_faults(world, directory, manifest)) messages.push_back(std::move(fault.message));
  return messages;
}

void verify(const Communicator& world, const fs::path& directory, VerifyOutput output) {
  std::vector<Fault> faults;
  std::size_t shards = 0;
  std::vector<std::string> hashes;
  for (const fs::path& split : splits_of(directory)) {
    const Manifest manifest = read_manifest(split);
    std::vector<Fault> found = find_faults(world, split, manifest);
    shards += manifest.shards.size();
    hashes.push_back(fmt::format("{} {}", split == directory ? "." : split.filename().string(), manifest.root_hash));
    if (output == VerifyOutput::summary) {
      log::plain(fmt::format("{}: {} with {} verified, {} damaged", printable(split.string()),
                             counted(manifest.shards.size(), "shard"), counted(manifest.samples(), "sample"),
                             found.size()));
    }
    std::ranges::move(found, std::back_inserter(faults));
  }
  if (world.rank() == 0) {
    for (std::size_t i = 0; i + 1 < faults.size(); ++i) log::warning(std::string_view(faults[i].message));
  }
  require_checked(faults, shards);
  // The last message is also part of the error, so that the error alone names a shard.
  require(faults.empty(), Failure::bad_data, "{} ({} of {} shards are damaged). Run make_shards again to replace them.",
          faults.empty() ? "" : faults.back().message, faults.size(), shards);
  if (output == VerifyOutput::root_hashes) log::plain(fmt::format("{}", fmt::join(hashes, "\n")));
}

}  // namespace lockstep

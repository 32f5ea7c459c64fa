#include "dataset/same_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/log.hpp"
#include "base/text/counted.hpp"
#include "base/text/printable.hpp"
#include "dataset/split.hpp"
#include "runtime/failure/contained_failure.hpp"

namespace lockstep {
namespace {

std::int64_t size_of_file(const std::filesystem::path& path) {
  std::error_code reason;
  const std::uintmax_t bytes = std::filesystem::file_size(path, reason);
  return reason ? -1 : static_cast<std::int64_t>(bytes);
}

std::string describe_size(std::int64_t bytes) {
  return bytes < 0 ? "cannot be found" : fmt::format("has {}", counted(bytes, "byte"));
}

// The first of this rank's files with another size; empty if there is none.
std::string first_difference(const Communicator& world, const std::vector<FileSize>& files) {
  const auto step = static_cast<std::size_t>(world.local_size());
  for (auto at = static_cast<std::size_t>(world.local_rank()); at < files.size(); at += step) {
    const auto& [path, bytes] = files[at];
    const std::int64_t here = size_of_file(path);
    if (here != bytes) {
      return fmt::format("'{}' {} on {} (rank {}), but {} on the node of rank 0", printable(path.string()),
                         describe_size(here), log::host(), world.rank(), describe_size(bytes));
    }
  }
  return "";
}

std::string name_of(const std::filesystem::path& folder) { return fmt::format("data set '{}'", folder.string()); }

}  // namespace

RankValue identity_of_data(const std::filesystem::path& folder, const Manifest& manifest) {
  return {name_of(folder),
          fmt::format("{} with the root hash {}", counted(manifest.samples(), "sample"), manifest.root_hash)};
}

void require_same_data(const Communicator& world, const std::filesystem::path& data) {
  if (world.size() == 1) return;
  std::vector<RankValue> values;
  on_all_ranks(world, [&] {
    for (const std::filesystem::path& folder : split_folders(data).by_split) {
      values.push_back(is_absent(folder / manifest_file) ? RankValue{name_of(folder), "no manifest"}
                                                         : identity_of_data(folder, read_manifest(folder)));
    }
  });
  require_same_on_ranks(world, values, same_files_advice);
}

std::vector<FileSize> sizes_on_rank_0(const Communicator& world, const std::vector<std::filesystem::path>& paths) {
  std::vector<std::int64_t> sizes(paths.size());
  if (world.rank() == 0) std::ranges::transform(paths, sizes.begin(), size_of_file);
  world.broadcast(std::as_writable_bytes(std::span(sizes)), 0);
  std::vector<FileSize> files;
  for (std::size_t at = 0; at < paths.size(); ++at) files.push_back({paths[at], sizes[at]});
  return files;
}

void require_same_files(const Communicator& world, const std::vector<FileSize>& files) {
  if (world.size() == 1) return;
  on_all_ranks(world, [&] {
    const std::string difference = first_difference(world, files);
    require(difference.empty(), Failure::usage, "the nodes of this job do not have the same files: {}. {}", difference,
            same_files_advice);
  });
}

}  // namespace lockstep

// The sources by name, which make_shards offers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

#include "comm/communicator.hpp"
#include "dataset/pictures/meta_mat.hpp"
#include "dataset/pictures/picture_storage.hpp"
#include "dataset/sources/sample_source.hpp"

namespace lockstep {

struct SourceRequest {
  std::filesystem::path folder;  // contains the published files
  std::int64_t samples = 0;      // number of training samples
  std::uint64_t seed = 0;
  PictureStorage pictures = {};
  MetaMat meta_mat = {};                // from `folder`, on rank 0
  const Communicator* world = nullptr;  // ranks that create the source together
  Cifar100Labels labels = Cifar100Labels::fine;
  IdxSet idx = {};
};
// The inputs of a source: a folder, possibly with options for labels, IDX files or picture storage; or a number of
// samples.
enum class SourceNeeds : std::uint8_t { folder, folder_and_labels, folder_and_idx_set, sample_count, pictures };
struct SourceEntry {
  std::string_view name;
  std::string_view help;  // what the source is and reads, for people
  SourceNeeds needs;
  std::unique_ptr<SampleSource> (*make)(const SourceRequest& request);
};
std::span<const SourceEntry> known_sources();

}  // namespace lockstep

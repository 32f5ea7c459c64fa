// The sources by name: what make_shards offers.
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
  std::filesystem::path folder;  // with the published files
  std::int64_t samples = 0;      // for training
  std::uint64_t seed = 0;
  PictureStorage pictures = {};
  MetaMat meta_mat = {};                // of `folder`, on rank 0
  const Communicator* world = nullptr;  // whose ranks make the source together
  Cifar100Labels labels = Cifar100Labels::fine;
  IdxSet idx = {};
};
// What it is told: a folder, that and which of its labels or files to take, a number of samples, or a folder and a word
// on how to store pictures.
enum class SourceNeeds : std::uint8_t { folder, folder_and_labels, folder_and_idx_set, sample_count, pictures };
struct SourceEntry {
  std::string_view name;
  std::string_view help;  // what it is and reads, for people
  SourceNeeds needs;
  std::unique_ptr<SampleSource> (*make)(const SourceRequest& request);
};
std::span<const SourceEntry> known_sources();

}  // namespace lockstep

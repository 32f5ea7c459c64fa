#include "dataset/pictures/listing/shared_pictures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>

#include "base/progress.hpp"
#include "dataset/pictures/listing/folder_names.hpp"
#include "dataset/pictures/listing/summary.hpp"
#include "dataset/pictures/picture_bytes.hpp"
#include "dataset/shards/hash.hpp"
#include "picture/decode.hpp"

namespace lockstep {
namespace {

constexpr std::size_t middle_bytes = 4096;
constexpr std::size_t many = 10'000;  // number of files from which progress is shown
constexpr std::size_t key_digits = 32;

struct Candidate {
  const PictureFile* file;
  SourceSplit split;
};
using Candidates = std::vector<Candidate>;
using Key = std::string;

constexpr std::array all_splits = {SourceSplit::train, SourceSplit::validation, SourceSplit::test};

bool are_alike(const Candidate& one, const Candidate& other) {
  return one.split == other.split && one.file->label == other.file->label;
}

// Whether two candidates with the same key select all that have it.
using Selects = bool (*)(const Candidate& first, const Candidate& other);

bool in_splits_or_classes(const Candidate& first, const Candidate& other) { return !are_alike(first, other); }
bool in_training(const Candidate& first, const Candidate& other) {
  return first.split == SourceSplit::train && other.split == SourceSplit::train;
}

// Candidates of the selected keys. `keys` has one key per candidate.
Candidates selected_groups(const Candidates& candidates, const std::vector<Key>& keys, Selects selects) {
  struct Group {
    Candidate first;
    bool is_selected = false;
  };
  std::unordered_map<Key, Group> groups;
  for (std::size_t at = 0; at < candidates.size(); ++at) {
    const auto [place, is_new] = groups.try_emplace(keys[at], Group{candidates[at]});
    Group& group = place->second;
    group.is_selected = group.is_selected || (!is_new && selects(group.first, candidates[at]));
  }
  Candidates kept;
  for (std::size_t at = 0; at < candidates.size(); ++at) {
    if (groups.at(keys[at]).is_selected) kept.push_back(candidates[at]);
  }
  return kept;
}

Candidates of_equal_lengths(const PictureList& list, Selects selects) {
  Candidates candidates;
  std::vector<Key> lengths;
  for (const SourceSplit split : all_splits) {
    for (const PictureFile& file : list.files(split)) {
      if (file.bytes == 0 || file.bytes > max_picture_bytes || !may_be_picture(file.name)) continue;
      candidates.push_back({&file, split});
      lengths.push_back(std::to_string(file.bytes));
    }
  }
  return selected_groups(candidates, lengths, selects);
}

// The key of each candidate. Rank r computes the keys of candidates r, r + ranks, ....
template <typename KeyOf>
std::vector<Key> keys_of(const Communicator& world, const Candidates& candidates, const KeyOf& key_of) {
  const auto ranks = static_cast<std::size_t>(world.size());
  const std::size_t own_files = candidates.size() / ranks;
  std::optional<Progress> progress;
  if (own_files > many) progress.emplace("comparing pictures", static_cast<std::int64_t>(own_files), "files");
  std::string own;
  for (auto at = static_cast<std::size_t>(world.rank()); at < candidates.size(); at += ranks) {
    own += key_of(*candidates[at].file, at);
    if (progress) progress->add(1);
  }
  if (progress) progress->finish();
  const std::vector<std::string> by_rank = world.all_gather(own);
  std::vector<Key> keys;
  keys.reserve(candidates.size());
  for (std::size_t at = 0; at < candidates.size(); ++at) {
    keys.push_back(by_rank[at % ranks].substr(at / ranks * key_digits, key_digits));
  }
  return keys;
}

std::string hash_of(const std::string& bytes) { return xxh3_128_hex(std::as_bytes(std::span(bytes))); }

// Files that are not pictures will be left out, so each gets a unique key.
Key key_of_picture(const std::string& bytes, std::size_t at) {
  if (picture_format(std::as_bytes(std::span(bytes))) == PictureFormat::unknown) return fmt::format("{:032}", at);
  return hash_of(bytes);
}

// A picture, and the first one with the same bytes.
struct Copy {
  Candidate picture;
  Candidate first;
};

// Collective. In the order of the splits and of the list.
std::vector<Copy> find_copies(const Communicator& world, const PictureList& list, Selects selects) {
  const PictureBytes bytes(list);
  Candidates candidates = of_equal_lengths(list, selects);
  const std::vector<Key> middles = keys_of(world, candidates, [&](const PictureFile& file, std::size_t) {
    return hash_of(bytes.middle_of(file, middle_bytes));
  });
  candidates = selected_groups(candidates, middles, selects);
  const std::vector<Key> hashes = keys_of(world, candidates, [&](const PictureFile& file, std::size_t at) {
    return key_of_picture(bytes.all_of(file), at);
  });
  std::unordered_map<Key, Candidate> first;
  std::vector<Copy> copies;
  for (std::size_t at = 0; at < candidates.size(); ++at) {
    const auto [place, is_new] = first.emplace(hashes[at], candidates[at]);
    if (!is_new && selects(place->second, candidates[at])) copies.push_back({candidates[at], place->second});
  }
  return copies;
}

bool in_any_split(const Candidate&, const Candidate&) { return true; }

// Each with all pictures that have the same bytes.
std::vector<Candidates> groups_of_copies(const Communicator& world, const PictureList& list) {
  std::vector<Candidates> groups;
  std::unordered_map<const PictureFile*, std::size_t> places;
  for (const auto& [picture, first] : find_copies(world, list, in_any_split)) {
    const auto [place, is_new] = places.try_emplace(first.file, groups.size());
    if (is_new) groups.push_back({first});
    groups[place->second].push_back(picture);
  }
  return groups;
}

// `trained`: training pictures of each class.
bool belong_to_test(const Candidates& copies, std::vector<std::int64_t> trained) {
  if (std::ranges::min(copies, {}, [](const Candidate& one) { return one.file->name; }).split != SourceSplit::test) {
    return false;
  }
  for (const Candidate& one : copies)
    trained[static_cast<std::size_t>(one.file->label)] -= one.split == SourceSplit::train;
  return std::ranges::all_of(
      copies, [&](const Candidate& one) { return trained[static_cast<std::size_t>(one.file->label)] > 0; });
}

}  // namespace

const char* name_of(SourceSplit split) {
  if (split == SourceSplit::validation) return "validation";
  return split == SourceSplit::train ? "training" : "test";
}

std::vector<SharedPicture> shared_pictures(const Communicator& world, const PictureList& list) {
  std::vector<SharedPicture> shared;
  for (const auto& [picture, first] : find_copies(world, list, in_splits_or_classes)) {
    shared.push_back({picture.file->name, picture.split, first.file->name, first.split});
  }
  std::ranges::sort(shared, {}, [](const SharedPicture& one) { return std::pair(one.name, one.same_as); });
  return shared;
}

bool keep_copies_together(const Communicator& world, PictureList& list) {
  std::set<const PictureFile*> moved;
  std::vector<std::int64_t> trained = counts_by_class(list, SourceSplit::train, CountedFiles::all);
  for (const Candidates& copies : groups_of_copies(world, list)) {
    const SourceSplit split = belong_to_test(copies, trained) ? SourceSplit::test : SourceSplit::train;
    for (const Candidate& one : copies) {
      if (one.split == split) continue;
      moved.insert(one.file);
      trained[static_cast<std::size_t>(one.file->label)] += split == SourceSplit::train ? 1 : -1;
    }
  }
  std::vector<PictureFile> train;
  std::vector<PictureFile> test;
  for (const bool moves : {false, true}) {
    for (const PictureFile& file : list.train) {
      if (moved.contains(&file) == moves) (moves ? test : train).push_back(file);
    }
    for (const PictureFile& file : list.test) {
      if (moved.contains(&file) == moves) (moves ? train : test).push_back(file);
    }
  }
  if (moved.empty() || test.empty()) return false;
  list.train = std::move(train);
  list.test = std::move(test);
  return true;
}

std::map<std::int64_t, std::int64_t> training_copies(const Communicator& world, const PictureList& list) {
  std::map<std::int64_t, std::int64_t> copies;
  for (const auto& [picture, first] : find_copies(world, list, in_training)) {
    copies[picture.file - list.train.data()] = first.file - list.train.data();
  }
  return copies;
}

}  // namespace lockstep

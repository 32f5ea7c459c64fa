// Which files a data set of pictures is made of, and of which class each is. The pictures are not looked at.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "dataset/pictures/picture_storage.hpp"
#include "dataset/sources/sample_source.hpp"

namespace lockstep {

struct PictureFile {
  std::string name;  // relative to the list's folder, or absolute; of one in an archive the archive's name comes first
  std::int64_t bytes = 0;
  std::int32_t label = 0;
  std::int32_t archive = -1;  // of PictureList::archives; -1: a file of its own
  std::int64_t offset = 0;    // in the archive
  bool operator==(const PictureFile&) const = default;
};

struct PictureList {
  std::filesystem::path folder;
  std::vector<std::string> classes;
  std::vector<PictureFile> train;
  std::vector<PictureFile> test;
  std::vector<std::string> archives;  // tar files, relative to the folder
  std::vector<OddFile> left_out;
  std::string test_words;  // where the test split comes from, for people

  std::vector<PictureFile>& files(SourceSplit split) { return split == SourceSplit::train ? train : test; }
  const std::vector<PictureFile>& files(SourceSplit split) const { return split == SourceSplit::train ? train : test; }
};

// What `folder` holds, in this order of preference: train.list and test.list (or val.list); folders train/ and test/
// (or val/) of class folders; class folders. Without test pictures a tenth of each class is held out, drawn by `seed`.
// Files are in an order drawn by `seed`, so that each shard is a mixture of all classes. Throws Error(usage) where
// there is nothing of the kind, or test/ has a class that train/ lacks; Error(bad_data) naming the line of a list that
// is wrong.
PictureList list_pictures(const std::filesystem::path& folder, const PictureStorage& storage, std::uint64_t seed);

// xxh3-128 over names, sizes and labels, in their order.
std::string fingerprint(const PictureList& list);

// From rank to rank.
std::string to_text(const PictureList& list);
PictureList picture_list_from(const std::string& text);

}  // namespace lockstep

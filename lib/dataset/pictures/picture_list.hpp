// Which files a data set of pictures is made of, and which class each one has.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "dataset/pictures/meta_mat.hpp"
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
  std::vector<PictureFile> validation;  // empty: the source has no validation split
  std::vector<std::string> archives;    // tar files, relative to the folder
  std::vector<OddFile> left_out;        // of class folders
  std::string test_origin;              // where the test split comes from, for people
  std::string validation_origin;        // likewise

  // Known on the rank that made the list alone. They decide no sample, so the fingerprint does not cover them.
  std::vector<OddFile> remarks;    // files that are left out elsewhere, and files that are taken and odd
  std::vector<std::string> notes;  // how the folder was read, as sentences
  std::string train_origin;        // where the training split comes from
  MetaMat meta_mat;                // of ImageNet's development kit

  std::vector<PictureFile>& files(SourceSplit split) {
    if (split == SourceSplit::validation) return validation;
    return split == SourceSplit::train ? train : test;
  }
  const std::vector<PictureFile>& files(SourceSplit split) const {
    if (split == SourceSplit::validation) return validation;
    return split == SourceSplit::train ? train : test;
  }
};

// xxh3-128 over names, sizes and labels, in their order.
std::string fingerprint(const PictureList& list);

// From rank to rank.
std::string to_text(const PictureList& list);
PictureList picture_list_from(const std::string& text);

}  // namespace lockstep

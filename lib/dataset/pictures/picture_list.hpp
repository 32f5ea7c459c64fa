// The files of a picture data set and their classes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "dataset/pictures/meta_mat.hpp"
#include "dataset/sources/sample_source.hpp"

namespace lockstep {

struct PictureFile {
  std::string name;  // relative to the list's folder, or absolute; in an archive, the archive's name comes first
  std::int64_t bytes = 0;
  std::int32_t label = 0;
  std::int32_t archive = -1;  // index into PictureList::archives; -1: a separate file
  std::int64_t offset = 0;    // in the archive
  bool operator==(const PictureFile&) const = default;
};

inline constexpr const char* drawn_test = "a tenth of each class, held out by --seed";

struct PictureList {
  std::filesystem::path folder;
  std::vector<std::string> classes;
  std::vector<PictureFile> train;
  std::vector<PictureFile> test;
  std::vector<PictureFile> validation;  // empty if the source has no validation split
  std::vector<std::string> archives;    // tar files, relative to the folder
  std::vector<OddFile> left_out;        // files in class folders
  std::string test_origin;              // of the test split, for people; or drawn_test
  std::string validation_origin;        // of the validation split

  // Known only on the rank that created the list. The following members do not affect samples, so the fingerprint does
  // not include them.
  std::vector<OddFile> remarks;    // other files that are left out, and files that are used although they are unusual
  std::vector<std::string> notes;  // how the folder was interpreted, as sentences
  std::string train_origin;        // of the training split
  MetaMat meta_mat;                // from ImageNet's development kit

  std::vector<PictureFile>& files(SourceSplit split) {
    if (split == SourceSplit::validation) return validation;
    return split == SourceSplit::train ? train : test;
  }
  const std::vector<PictureFile>& files(SourceSplit split) const {
    if (split == SourceSplit::validation) return validation;
    return split == SourceSplit::train ? train : test;
  }
};

// xxh3-128 over names, sizes and labels, in the order of the list. Does not depend on how the folder's path is written.
std::string fingerprint(const PictureList& list);
// The fingerprint of earlier versions, which also covers the path as written, and the files left out.
std::string earlier_fingerprint(const PictureList& list);

// Serialization, to send the list between ranks.
std::string to_text(const PictureList& list);
PictureList picture_list_from(const std::string& text);

}  // namespace lockstep

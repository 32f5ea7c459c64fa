// A folder of files that are called like pictures, and the list that is made of it. Nobody looks into the files.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "dataset/pictures/listing/listing.hpp"
#include "support/message_of.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::test {

class ListedFolder : public ::testing::Test {
 protected:
  std::filesystem::path root() const { return folder_.path() / "set"; }
  std::string quoted(const std::string& name) const { return "'" + (root() / name).string() + "'"; }

  void write(const std::filesystem::path& name, const std::string& text = "x") const {
    std::filesystem::create_directories((root() / name).parent_path());
    std::ofstream(root() / name) << text;
  }
  void write_all(const std::vector<std::string>& names) const {
    for (const std::string& name : names) write(name);
  }
  void write_class(const std::filesystem::path& folder, int count) const {
    for (int i = 0; i < count; ++i) write(folder / (std::to_string(i) + ".jpg"));
  }
  // Each with so many pictures.
  void write_classes(const std::filesystem::path& folder, int count) const {
    for (const char* const name : {"ant", "cat", "dog"}) write_class(folder / name, count);
  }

  PictureList list(std::uint64_t seed = 1) const { return list_pictures(root(), storage_, seed); }
  std::string usage_text() const {
    return message_of(Failure::usage, [&] { list(); });
  }
  std::string data_text() const {
    return message_of(Failure::bad_data, [&] { list(); });
  }

  static std::vector<std::string> names(const std::vector<PictureFile>& files) {
    std::vector<std::string> names;
    for (const PictureFile& file : files) names.push_back(file.name);
    return names;
  }
  static std::vector<std::string> files_of(const std::vector<OddFile>& odd_files) {
    std::vector<std::string> files;
    for (const OddFile& odd : odd_files) files.push_back(odd.file);
    return files;
  }
  static std::string joined(const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) text += (text.empty() ? "" : "\n") + line;
    return text;
  }
  static PictureFile file(const std::string& name, std::int64_t bytes, std::int32_t label) {
    return {name, bytes, label, -1, 0};
  }

  TemporaryFolder folder_;
  PictureStorage storage_;
};

}  // namespace lockstep::test

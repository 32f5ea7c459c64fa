// Pictures in folders, one for each class, as torchvision's ImageFolder and ImageNet have them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "dataset/pictures/picture_list.hpp"
#include "dataset/pictures/picture_storage.hpp"

namespace lockstep {

// The entries of a folder, each kind sorted by its bytes. A link counts as what it leads to.
struct FolderContents {
  std::vector<std::string> folders;
  std::vector<std::string> files;
  std::vector<OddFile> left_out;  // hidden, of the system, skipped by the user, or neither of both; with the whole path

  bool has_pictures() const;  // judged by names, as may_be_picture() does
};
// Of list.folder / `part`. Throws Error(usage) where it cannot be listed.
FolderContents contents_of(const std::filesystem::path& part, const PictureStorage& storage, const PictureList& list);

// Adds the files below `list.folder / part / classes[i]`, at any depth, to `files` with label i; a class without a
// folder has none. What is no regular file, is hidden, or a link out of list.folder goes to list.left_out; what the
// system made or the user skips goes to list.remarks. Throws Error(usage) where a folder cannot be listed.
void add_class_folders(const std::filesystem::path& part, const std::vector<std::string>& classes,
                       const PictureStorage& storage, PictureList& list, std::vector<PictureFile>& files);

}  // namespace lockstep

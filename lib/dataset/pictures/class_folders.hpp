// Pictures in one folder per class, as in torchvision's ImageFolder and ImageNet.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "dataset/pictures/picture_list.hpp"
#include "dataset/pictures/picture_storage.hpp"

namespace lockstep {

// The entries of a folder, each kind sorted bytewise. A link counts as its target.
struct FolderContents {
  std::vector<std::string> folders;
  std::vector<std::string> files;
  std::vector<OddFile> left_out;  // whole paths of hidden files, system files, files the user skips, and entries that
                                  // are neither file nor folder

  bool has_pictures() const;  // decided by file names, as in may_be_picture()
};
// Lists the entries of list.folder / `part`. Throws Error(usage) if the folder cannot be listed.
FolderContents contents_of(const std::filesystem::path& part, const PictureStorage& storage, const PictureList& list);

// Adds the files below `list.folder / part / classes[i]`, at any depth, to `files` with label i. A class without a
// folder adds no files. Hidden files, files that are not regular, and links out of list.folder go to list.left_out.
// System files and files the user skips go to list.remarks. Throws Error(usage) if a folder cannot be listed.
void add_class_folders(const std::filesystem::path& part, const std::vector<std::string>& classes,
                       const PictureStorage& storage, PictureList& list, std::vector<PictureFile>& files);

}  // namespace lockstep

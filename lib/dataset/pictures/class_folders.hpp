// Pictures in folders, one for each class, as torchvision's ImageFolder and ImageNet have them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "dataset/pictures/picture_list.hpp"

namespace lockstep {

// Names of the folders in `folder`, sorted by their bytes. A link is taken for a folder where it may be followed.
std::vector<std::string> folders_in(const std::filesystem::path& folder);

// Adds the files below `list.folder / part / classes[i]`, at any depth, to `files` with label i; a class without a
// folder has none. What is no regular file, is hidden, or a link out of list.folder goes to list.left_out. Throws
// Error(usage) where a folder cannot be listed.
void add_class_folders(const std::filesystem::path& part, const std::vector<std::string>& classes,
                       const PictureStorage& storage, PictureList& list, std::vector<PictureFile>& files);

}  // namespace lockstep

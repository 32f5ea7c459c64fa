// Tiny ImageNet's validation pictures, which are in one folder, with their classes in a table.
//
//   train/n01443537/images/n01443537_0.JPEG ...
//   val/images/val_0.JPEG ..., val/val_annotations.txt: lines of "val_0.JPEG n01443537 0 32 44 62", tab-separated
//   test/images/test_0.JPEG ..., without classes
#pragma once

#include <filesystem>
#include <vector>

#include "dataset/pictures/picture_list.hpp"
#include "dataset/pictures/picture_storage.hpp"

namespace lockstep {

inline constexpr const char* annotations_file = "val_annotations.txt";

// Adds the annotated pictures of list.folder/`part` to `files`; others go to list.remarks. list.classes must be filled.
// Throws Error(bad_data) naming a faulty line, or a picture that does not exist.
void add_annotated_pictures(const std::filesystem::path& part, const PictureStorage& storage, PictureList& list,
                            std::vector<PictureFile>& files);

}  // namespace lockstep

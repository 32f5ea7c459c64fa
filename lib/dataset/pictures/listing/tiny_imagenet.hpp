// Tiny ImageNet's validation pictures: they lie in one folder, and a table has their classes.
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

// Adds the pictures of list.folder/`part` that its annotations name to `files`; others go to list.remarks. list.classes
// is filled. Throws Error(bad_data) naming the line that is wrong, or a picture that is not there.
void add_annotated_pictures(const std::filesystem::path& part, const PictureStorage& storage, PictureList& list,
                            std::vector<PictureFile>& files);

}  // namespace lockstep

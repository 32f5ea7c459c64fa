// ImageNet (ILSVRC 2012) as published: archives, and a validation set labeled by ILSVRC2012_ID.
//
//   ILSVRC2012_img_train.tar   contains nNNNNNNNN.tar for each class, which contains its pictures
//   ILSVRC2012_img_val.tar     ILSVRC2012_val_00000001.JPEG ... 00050000
//   ILSVRC2012_validation_ground_truth.txt, and meta.mat or map_clsloc.txt: from the development kit
//
// The ground truth uses the kit's own class numbers (ILSVRC2012_ID). They follow meta.mat, not the sorted class names,
// so using one for the other would silently mislabel every picture. meta.mat or map_clsloc.txt maps the numbers to
// classes. Without either, the data set is refused.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "dataset/pictures/meta_mat.hpp"
#include "dataset/pictures/picture_list.hpp"
#include "dataset/pictures/picture_storage.hpp"

namespace lockstep {

inline constexpr const char* imagenet_train_archive = "ILSVRC2012_img_train.tar";
inline constexpr const char* imagenet_validation_archive = "ILSVRC2012_img_val.tar";

// Fills list.classes (sorted), list.train and list.test from the archives in list.folder. The kit's files are there, in
// ILSVRC2012_devkit_t12/ or in its data/. Throws Error(usage) naming what is missing, Error(bad_data) naming what is
// damaged.
void add_imagenet_archives(PictureList& list);

// Adds validation pictures that are unpacked in list.folder/`part`, without class folders, to `files`. list.classes
// must be filled.
void add_imagenet_validation(const std::filesystem::path& part, const PictureStorage& storage, PictureList& list,
                             std::vector<PictureFile>& files);
// Whether a file name is that of a validation picture: "ILSVRC2012_val_00000017.JPEG".
bool is_imagenet_validation_name(std::string_view file);
// Whether an entry of list.folder is part of the development kit.
bool is_imagenet_kit_name(std::string_view name);

// Path of the kit's meta.mat in `folder`; empty if there is none.
std::filesystem::path meta_mat_in(const std::filesystem::path& folder);
// The class ("n01440764") of each validation picture, in order of their numbers, which begin with 1. `meta` was read
// from meta_mat_in(folder), and is used if that file exists.
std::vector<std::string> read_validation_classes(const std::filesystem::path& folder, const MetaMat& meta);

// The kit's number of each class, from map_clsloc.txt: lines like "n02119789 1 kit_fox".
ClassNumbers read_map_clsloc(const std::filesystem::path& file);

}  // namespace lockstep

// ImageNet (ILSVRC 2012) as it is published: archives, and labels of the validation set by numbers of its own.
//
//   ILSVRC2012_img_train.tar   holds nNNNNNNNN.tar for each class, which holds its pictures
//   ILSVRC2012_img_val.tar     ILSVRC2012_val_00000001.JPEG ... 00050000
//   ILSVRC2012_validation_ground_truth.txt, and meta.mat or map_clsloc.txt: of the development kit
//
// The ground truth's numbers are the kit's own ("ILSVRC2012_ID"): in the order of meta.mat, not of the sorted names of
// the classes, so that taking the one for the other would mislabel every picture without a word. meta.mat or
// map_clsloc.txt translates them, and without either the set is refused.
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

// Fills list.classes (sorted), list.train and list.test from the archives in list.folder. The kit's files lie there, in
// ILSVRC2012_devkit_t12/ or in its data/. Throws Error(usage) naming what is missing, Error(bad_data) naming what is
// damaged.
void add_imagenet_archives(PictureList& list);

// Adds validation pictures that lie unpacked in list.folder/`part`, without folders, to `files`. list.classes is
// filled.
void add_imagenet_validation(const std::filesystem::path& part, const PictureStorage& storage, PictureList& list,
                             std::vector<PictureFile>& files);
// Whether a picture's file name is that of a validation picture: "ILSVRC2012_val_00000017.JPEG".
bool is_imagenet_validation_name(std::string_view file);
// Whether an entry of list.folder is part of the development kit.
bool is_imagenet_kit_name(std::string_view name);

// Where the kit's meta.mat lies in `folder`; empty where it does not.
std::filesystem::path meta_mat_in(const std::filesystem::path& folder);
// What the kit says: the class ("n01440764") of each validation picture, in their order, which begins with number 1.
// `meta` was read from meta_mat_in(folder), and counts where that file is there.
std::vector<std::string> read_validation_classes(const std::filesystem::path& folder, const MetaMat& meta);

// The kit's number of each class, from its map_clsloc.txt: lines of "n02119789 1 kit_fox".
ClassNumbers read_map_clsloc(const std::filesystem::path& file);

}  // namespace lockstep

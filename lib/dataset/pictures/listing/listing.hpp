// Finds the pictures of a data set in a folder, and splits them. Does not open the pictures.
#pragma once

#include <cstdint>
#include <filesystem>

#include "dataset/pictures/picture_list.hpp"
#include "dataset/pictures/picture_storage.hpp"

namespace lockstep {

// Lists the first of these that `folder` contains:
// - train.list, with test.list and val.list
// - ImageNet's archives
// - split folders or class folders (folder_layout.hpp)
//
// If there is a validation and a test split, both are listed; a single one is the test split. Without either, a tenth
// of each class is held out, drawn by `seed`. Files are shuffled by `seed`, so that each shard is a mixture of all
// classes. `meta`: ImageNet's meta.mat, which was read before MPI started (meta_mat.hpp). Throws Error(usage) if
// nothing is found, or if something looks like a mistake that `storage` does not allow; Error(bad_data) naming a faulty
// line of a list.
PictureList list_pictures(const std::filesystem::path& folder, const PictureStorage& storage, std::uint64_t seed,
                          const MetaMat& meta = {});

}  // namespace lockstep

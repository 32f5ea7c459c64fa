// Finds the pictures of a data set in a folder, and splits them. The pictures are not opened.
#pragma once

#include <cstdint>
#include <filesystem>

#include "dataset/pictures/picture_list.hpp"
#include "dataset/pictures/picture_storage.hpp"

namespace lockstep {

// What `folder` holds, in this order of preference: train.list, with test.list and val.list; ImageNet's archives; split
// folders or class folders (folder_layout.hpp). Where there are a validation and a test split, both are listed; one
// alone is the test split. Without either a tenth of each class is held out, drawn by `seed`. Files are in an order
// drawn by `seed`, so that each shard is a mixture of all classes. Throws Error(usage) where there is nothing of the
// kind, or what there is looks like a mistake that `storage` does not allow; Error(bad_data) naming the line of a list
// that is wrong.
// `meta`: ImageNet's meta.mat as it was read before MPI started (meta_mat.hpp).
PictureList list_pictures(const std::filesystem::path& folder, const PictureStorage& storage, std::uint64_t seed,
                          const MetaMat& meta = {});

}  // namespace lockstep

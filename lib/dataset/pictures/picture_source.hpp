// A sample source that reads pictures of any size from picture files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "comm/communicator.hpp"
#include "dataset/pictures/meta_mat.hpp"
#include "dataset/pictures/picture_storage.hpp"
#include "dataset/sources/sample_source.hpp"

namespace lockstep {

// Collective. Rank 0 lists the files (listing.hpp), prints a summary and broadcasts the list. All ranks search for
// pictures that are in two splits: Error(usage) unless storage allows duplicates. If the test split is drawn,
// copies are kept together.
//
// A file that is damaged or not a picture is left out with a remark. With storage.is_strict it throws Error(bad_data)
// naming the file. In both modes the conversion fails if a file cannot be read, or if its length has changed since it
// was listed.
//
// `meta` is what rank 0 read (see list_pictures()). Throws as sample_bits_of().
std::unique_ptr<SampleSource> open_pictures(const Communicator& world, const std::filesystem::path& folder,
                                            const PictureStorage& storage, std::uint64_t seed,
                                            const MetaMat& meta = {});

}  // namespace lockstep

// Pictures of all sizes, from files of any kind, as samples for shards.
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
// pictures that are in two splits: Error(usage) unless storage allows duplicates. Reading a file that is no
// picture, or a damaged one, leaves it out and says so; with storage.is_strict it throws Error(bad_data) naming the
// file. A file that cannot be read at all, or changed its length since it was listed, ends the conversion either way.
// Throws as sample_bits_of(). `meta`: as rank 0 read it (list_pictures()).
std::unique_ptr<SampleSource> open_pictures(const Communicator& world, const std::filesystem::path& folder,
                                            const PictureStorage& storage, std::uint64_t seed,
                                            const MetaMat& meta = {});

}  // namespace lockstep

// Finds pictures that two splits share, because testing on training pictures is meaningless, pictures that two classes
// share, because one of their labels is wrong, and copies in the training split, which may be split further.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "dataset/pictures/picture_list.hpp"

namespace lockstep {

struct SharedPicture {
  std::string name;  // of the picture in the test or validation split, or in another class
  SourceSplit split;
  std::string same_as;     // name of the picture with the same bytes
  SourceSplit same_split;  // train if possible, else validation; the same as `split` if two of its classes share it
};

const char* name_of(SourceSplit split);  // "training", "validation", "test"

// Collective. All ranks pass the same list and share the reading; each returns all results. Only files with the same
// length as a file of another split or class are opened. First 4 KiB from their middle are compared; files with equal
// middles are read as a whole. Files that are not pictures are ignored. Throws as PictureBytes does.
std::vector<SharedPicture> shared_pictures(const Communicator& world, const PictureList& list);

// Collective. Moves pictures of a drawn test split and of the training split, so that copies are in one of them: in
// that of the copy whose name is first, unless a class would lose all its training pictures. Returns whether any was
// moved. If none would remain for the test, none is.
bool keep_copies_together(const Communicator& world, PictureList& list);

// As shared_pictures(): training pictures with the same bytes as an earlier one: the index of each, and that of the
// first one.
std::map<std::int64_t, std::int64_t> training_copies(const Communicator& world, const PictureList& list);

}  // namespace lockstep

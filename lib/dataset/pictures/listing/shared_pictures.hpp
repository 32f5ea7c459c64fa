// Finds pictures that two splits share, because testing on training pictures is meaningless.
#pragma once

#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "dataset/pictures/picture_list.hpp"

namespace lockstep {

struct SharedPicture {
  std::string name;        // of the picture in the test or validation split
  const char* split;       // "test"
  std::string same_as;     // name of the picture with the same bytes
  const char* same_split;  // "training", or "validation" if only that split and the test share it
};

// Collective. All ranks pass the same list and share the reading; each returns all results. Only files with the same
// length as a file of another split are opened. First 4 KiB from their middle are compared; files with equal middles
// are read as a whole. Files that are not pictures are ignored. Throws as PictureBytes does.
std::vector<SharedPicture> shared_pictures(const Communicator& world, const PictureList& list);

}  // namespace lockstep

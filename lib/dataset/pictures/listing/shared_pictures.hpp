// Pictures that two splits hold alike: a test on pictures that were learned measures nothing.
#pragma once

#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "dataset/pictures/picture_list.hpp"

namespace lockstep {

struct SharedPicture {
  std::string name;        // in the test or validation split
  const char* split;       // "test"
  std::string same_as;     // a picture with the same bytes
  const char* same_split;  // "training"; "validation" where only that and the test share it
};

// Collective: all ranks have the same list and share the reading; each returns all that was found. Only files that are
// as long as one of another split are opened: 4 KiB of their middle are read, and all of those whose middles are alike.
// Files that are no pictures do not count. Throws as PictureBytes does.
std::vector<SharedPicture> shared_pictures(const Communicator& world, const PictureList& list);

}  // namespace lockstep

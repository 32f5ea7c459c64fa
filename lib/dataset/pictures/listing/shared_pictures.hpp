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
  const char* same_split;  // "training", or "validation" where `split` is "test"
};

// Collective: all ranks have the same list and share the reading; what is found is known on rank 0. Only files that are
// as long as one of another split are read: 4 KiB of their middle, and the whole where those are alike. So of ImageNet
// a third of the files are opened. Files that are no pictures do not count. Throws as PictureBytes does.
std::vector<SharedPicture> shared_pictures(const Communicator& world, const PictureList& list);

}  // namespace lockstep

// Interprets a folder of folders: class folders, or split folders that contain class folders, possibly inside wrapper
// folders.
//
//   cat/ dog/                          class folders
//   Training/cat Training/dog Test/... split folders: names that split_name_of() accepts, in any case
//   archive/dataset/cat ...            wrapper folders: each contains one folder and no picture
//
// Validation and test folders without class folders are labeled by ImageNet's development kit or Tiny ImageNet's
// val_annotations.txt, if present. Otherwise they are left out, provided that the other one of the two has labels.
#pragma once

#include "dataset/pictures/picture_list.hpp"
#include "dataset/pictures/picture_storage.hpp"

namespace lockstep {

// Fills `list`, whose folder is set, in the order of names. Notes describe an unusual layout; remarks name files
// outside the class folders. Throws Error(usage) for ambiguous layouts, naming the option that decides.
void add_folders(const PictureStorage& storage, PictureList& list);

}  // namespace lockstep

// How a folder of folders is read: as class folders, or as split folders of class folders, perhaps inside folders that
// only wrap them.
//
//   cat/ dog/                          class folders
//   Training/cat Training/dog Test/... split folders: names as split_name_of() takes them, in any case
//   archive/dataset/cat ...            wrapped: each folder on the way holds one folder and no picture
//
// Validation and test folders without class folders have labels where ImageNet's development kit or Tiny ImageNet's
// val_annotations.txt has them. Else they are left out, if the other one of the two has labels.
#pragma once

#include "dataset/pictures/picture_list.hpp"
#include "dataset/pictures/picture_storage.hpp"

namespace lockstep {

// Fills `list`, whose folder is set, in the order of names. Notes say what was not plain; remarks name what lies
// outside the class folders. Throws Error(usage) for what has no obvious meaning, naming the option that decides.
void add_folders(const PictureStorage& storage, PictureList& list);

}  // namespace lockstep

// Picture lists in the format of PaddlePaddle and Caffe: a path on each line, with or without a label.
#pragma once

#include <filesystem>

#include "dataset/pictures/picture_list.hpp"

namespace lockstep {

// Relative to the list's folder. An empty name means no such list.
struct ListFiles {
  std::filesystem::path train;
  std::filesystem::path validation;
  std::filesystem::path test;
};

// Adds the pictures that the files list. A line has a path (relative to list.folder, else to the working directory, or
// absolute; it may contain spaces), white space, and a label. If all labels are numbers, they are classes from 0;
// list.folder/classes.txt, if it exists, has their names, one per line. Otherwise labels are class names, numbered in
// bytewise order. Empty lines are ignored, but not between the names of classes.
//
// If the first line is the path of a file, no line of any list has a label. The label of a picture is then the name of
// its folder, if these folders are side by side, and several in the training list: "train/cat/1.jpg".
//
// Throws Error(bad_data) naming the faulty line, Error(usage) if a list cannot be read.
void add_list_files(const ListFiles& files, PictureList& list);

}  // namespace lockstep

// Lists of pictures as PaddlePaddle and Caffe have them: a path and a label on each line.
#pragma once

#include <filesystem>

#include "dataset/pictures/picture_list.hpp"

namespace lockstep {

// Relative to the list's folder; an empty name is none.
struct ListFiles {
  std::filesystem::path train;
  std::filesystem::path validation;
  std::filesystem::path test;
};

// Adds the pictures that the files name. A line is a path (relative to list.folder, or absolute; it may have spaces),
// white space, and a label. Where all labels are numbers they are classes from 0, whose names stand in
// list.folder/classes.txt, one a line, if that is there; else they are names of classes, numbered in the order of their
// bytes. Empty lines do not count. Throws Error(bad_data) naming the line that is wrong, Error(usage) where a list
// cannot be read.
void add_list_files(const ListFiles& files, PictureList& list);

}  // namespace lockstep

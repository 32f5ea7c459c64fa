// What a data set of pictures holds, for people: printed before anything is written.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dataset/pictures/picture_list.hpp"

namespace lockstep {

enum class CountedFiles : std::uint8_t {
  all,
  pictures  // those whose names may be of pictures, as may_be_picture() has it
};
// One number for each class.
std::vector<std::int64_t> counts_by_class(const PictureList& list, SourceSplit split, CountedFiles kind);

// Splits with their sources, classes with their counts (all of few, of many the first and the last), and what is left
// out. One line each.
std::vector<std::string> summary_of(const PictureList& list);

// The files that are left out, grouped by the reason: "5 files: each lies outside the class folders: 'a.jpg', 'b.jpg',
// 'c.jpg' and 2 more".
std::vector<std::string> left_out_lines(const PictureList& list);

// What is allowed and yet worth a warning: classes without pictures, classes whose names look alike.
std::vector<std::string> doubts_about(const PictureList& list);

}  // namespace lockstep

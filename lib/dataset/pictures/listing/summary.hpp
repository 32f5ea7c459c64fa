// A summary of a picture data set for people, printed before anything is written.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dataset/pictures/picture_list.hpp"

namespace lockstep {

enum class CountedFiles : std::uint8_t {
  all,
  pictures  // only files that may be pictures by name, as in may_be_picture()
};
// One count per class.
std::vector<std::int64_t> counts_by_class(const PictureList& list, SourceSplit split, CountedFiles kind);

// One line each: splits with their sources, classes with their counts (the first and last ones if there are many), and
// files that are left out.
std::vector<std::string> summary_of(const PictureList& list);

// The files that are left out, grouped by reason: "5 files or folders ('a.jpg', 'b.jpg', 'c.jpg' and 2 more): each is
// outside the class folders".
std::vector<std::string> left_out_lines(const PictureList& list);

// Warnings about what is allowed but unusual: classes without pictures, classes whose names look alike.
std::vector<std::string> doubts_about(const PictureList& list);

}  // namespace lockstep

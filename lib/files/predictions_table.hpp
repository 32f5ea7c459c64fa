// Predictions as a table for other programs: one line for each sample of an evaluation, or for each class of a picture.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/text/table_cell.hpp"

namespace lockstep {

// tsv if the name ends in .tsv, otherwise csv.
TableFormat table_format_of(const std::filesystem::path& file);

// Call before the computation. An earlier table of any program may be replaced. Throws as require_place_for_result():
// names end in .csv, .tsv or have no ending.
void require_place_for_table(const std::filesystem::path& file);

// A header line, then the index, label, prediction and their names of each sample.
//
//   labels, predictions  [samples], each below the number of classes
std::string predictions_table(std::span<const std::int32_t> labels, std::span<const std::int32_t> predictions,
                              std::span<const std::string> classes, TableFormat format);

struct ClassProbability {
  std::int32_t label;
  float probability;
};

// The prediction for a picture without a label.
struct PicturePrediction {
  std::string file;
  std::vector<ClassProbability> likeliest;  // most likely first
  std::string fault;                        // why there are none: a sentence that names the file
};

// A header line, then for each class of each picture the file, the class's rank (from 1), number, name and probability.
std::string pictures_table(std::span<const PicturePrediction> predictions, std::span<const std::string> classes,
                           TableFormat format);

// The header line of a table of predicted ratings.
std::string rating_headings(TableFormat format);

}  // namespace lockstep

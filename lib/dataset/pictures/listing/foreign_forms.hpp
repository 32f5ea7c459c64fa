// Forms of data sets that are not read, named with what to do about them.
#pragma once

#include <filesystem>
#include <string>

namespace lockstep {

// Empty, or words on a table of labels, as Kaggle has them, that names pictures beside `picture`, with a command that
// makes train.list of it. `picture` is relative to `folder`; tables lie in `folder` or in folders around the picture.
std::string label_table_message(const std::filesystem::path& folder, const std::filesystem::path& picture);

// Empty, or words on the files in `folder` that other programs would read: WebDataset's archives, TFRecord, Parquet.
std::string other_layout_message(const std::filesystem::path& folder);

}  // namespace lockstep

// Recognizes data set formats that are not supported, for messages that say what to do about them.
#pragma once

#include <filesystem>
#include <string>

namespace lockstep {

// A message about a label table, as Kaggle provides, that names pictures next to `picture`. It includes a command that
// creates train.list from it. `picture` is relative to `folder`; tables are in `folder` or in folders around the
// picture. Empty if there is no such table.
std::string label_table_message(const std::filesystem::path& folder, const std::filesystem::path& picture);

// A message about files in `folder` for other programs: WebDataset archives, TFRecord, Parquet. Empty if there are
// none.
std::string other_layout_message(const std::filesystem::path& folder);

}  // namespace lockstep

#include "dataset/pictures/listing/unsupported_layouts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/text/counted.hpp"
#include "base/text/printable.hpp"
#include "dataset/pictures/tar_file.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t table_limit_bytes = std::size_t{1} << 28;

// Names of regular files, sorted; empty if the folder cannot be listed.
std::vector<std::string> files_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code reason;
  for (fs::directory_iterator at(folder, reason); !reason && at != fs::directory_iterator(); at.increment(reason)) {
    std::error_code unseen;
    if (at->is_regular_file(unseen)) names.push_back(at->path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

// Whether a shell and Python accept the text without quotes, because users copy commands from messages.
bool is_plain(std::string_view text) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./";
  return !text.starts_with('-') && text.find_first_not_of(plain) == std::string_view::npos;
}

std::vector<std::string> fields_of(std::string line) {
  if (line.ends_with('\r')) line.pop_back();
  std::vector<std::string> fields;
  std::istringstream text(line);
  for (std::string field; std::getline(text, field, ',');) fields.push_back(field);
  return fields;
}

struct LabelTable {
  fs::path file;       // relative to the folder
  std::string before;  // text to prepend to the first column to form a path
  std::string after;
  std::size_t column = 1;
  std::string label;  // header of that column
};

// The column with a usual label name, otherwise the second one.
std::size_t label_column(const std::vector<std::string>& names) {
  constexpr std::array usual = {"label", "labels", "class", "category", "target", "breed", "species"};
  for (std::size_t column = 1; column < names.size(); ++column) {
    if (std::ranges::find(usual, names[column]) != usual.end()) return column;
  }
  return 1;
}

// Whether the first row of a table names a picture. Fills `table`.
bool read_label_table(const fs::path& folder, const fs::path& picture, LabelTable& table) {
  std::string text;
  try {
    text = read_file(folder / table.file, table_limit_bytes);
  } catch (const Error&) {
    return false;
  }
  std::istringstream lines(text);
  std::string header;
  std::string row;
  if (!std::getline(lines, header) || !std::getline(lines, row)) return false;
  const std::vector<std::string> names = fields_of(header);
  const std::vector<std::string> fields = fields_of(row);
  if (names.size() < 2 || fields.size() != names.size() || fields[0].empty() ||
      fields[0].find('\0') != std::string::npos)
    return false;
  table.column = label_column(names);
  table.label = names[table.column];
  const std::string beside = picture.parent_path().empty() ? "" : picture.parent_path().string() + "/";
  const std::string around = table.file.parent_path().empty() ? "" : table.file.parent_path().string() + "/";
  for (const std::string& before : {beside, around}) {
    for (const std::string& after : {std::string(), picture.extension().string()}) {
      if (is_absent(folder / fmt::format("{}{}{}", before, fields[0], after))) continue;
      table.before = before;
      table.after = after;
      return true;
    }
  }
  return false;
}

std::string table_command(const fs::path& folder, const LabelTable& table) {
  const std::string file = table.file.string();
  if (!is_plain(file) || !is_plain(table.before) || !is_plain(table.after)) return "Make train.list from it.";
  return fmt::format(
      "Make train.list from it with this command in '{}': python3 -c 'import csv, sys; [print(\"{}\" + row[0] + "
      "\"{}\", row[{}].replace(\" \", \"_\")) for row in list(csv.reader(sys.stdin))[1:]]' < {} > train.list",
      printable(folder.string()), table.before, table.after, table.column, file);
}

// A format recognized by the ending of a file name.
struct Form {
  std::string_view ending;
  std::string_view name;
};
constexpr std::array forms = {Form{".tfrecord", "TFRecord files"},
                              Form{".tfrecords", "TFRecord files"},
                              Form{".parquet", "Parquet files"},
                              Form{".arrow", "Arrow files"},
                              Form{".mdb", "an LMDB database"},
                              Form{".rec", "RecordIO files"},
                              Form{".beton", "FFCV files"},
                              Form{".npz", "NumPy files"},
                              Form{".npy", "NumPy files"},
                              Form{".h5", "HDF5 files"},
                              Form{".hdf5", "HDF5 files"},
                              Form{".mat", "MATLAB files"},
                              Form{".pkl", "pickled files"},
                              Form{".pt", "PyTorch files"},
                              Form{".zip", "archives"},
                              Form{".tar", "archives"},
                              Form{".tar.gz", "archives"},
                              Form{".tgz", "archives"},
                              Form{".tar.xz", "archives"},
                              Form{".7z", "archives"},
                              Form{".rar", "archives"},
                              Form{"-ubyte", "IDX files (use 'make_shards idx')"},
                              Form{"-ubyte.gz", "IDX files (use 'make_shards idx')"}};

// The extension of pictures in a WebDataset shard, which contains NAME.jpg and NAME.cls; empty if it is not such a
// shard.
std::string webdataset_ending(const fs::path& archive) {
  try {
    const TarFile tar(archive);
    const std::vector<TarEntry> entries = tar.entries(tar.whole());
    const auto is_named = [&](const std::string& name) {
      return std::ranges::any_of(entries, [&](const TarEntry& entry) { return entry.name == name; });
    };
    const auto label =
        std::ranges::find_if(entries, [](const TarEntry& entry) { return entry.name.ends_with(".cls"); });
    if (label == entries.end()) return {};
    const std::string key = label->name.substr(0, label->name.size() - 4);
    for (const char* const ending : {".jpg", ".jpeg", ".png", ".JPEG"}) {
      if (is_named(key + ending)) return ending;
    }
  } catch (const Error&) {  // not an archive
  }
  return {};
}

std::string webdataset_message(const fs::path& folder, const std::vector<std::string>& archives,
                               const std::string& ending) {
  const bool has_train =
      std::ranges::any_of(archives, [](const std::string& name) { return name.starts_with("train"); });
  return fmt::format(
      "It contains {} in WebDataset's format (NAME{} and NAME.cls in archives), which make_shards does not read. "
      "Unpack them and write train.list with these commands in '{}': mkdir pictures && for tar in {}.tar; do mkdir "
      "\"pictures/${{tar%.tar}}\" && tar -xf \"$tar\" -C \"pictures/${{tar%.tar}}\"; done; for label in "
      "pictures/*/*.cls; do echo \"${{label%.cls}}{} $(cat \"$label\")\"; done > train.list",
      counted(archives.size(), "archive"), ending, printable(folder.string()), has_train ? "train*" : "*", ending);
}

}  // namespace

std::string label_table_message(const fs::path& folder, const fs::path& picture) {
  for (fs::path around = picture.parent_path();; around = around.parent_path()) {
    for (const std::string& name : files_in(folder / around)) {
      LabelTable table;
      table.file = around / name;
      if (!name.ends_with(".csv") || !read_label_table(folder, picture, table)) continue;
      return fmt::format("'{}' looks like a table of labels from Kaggle, with the label in column '{}'. {}",
                         printable(table.file.string()), printable(table.label), table_command(folder, table));
    }
    if (around.empty()) return {};
  }
}

std::string other_layout_message(const fs::path& folder) {
  const std::vector<std::string> files = files_in(folder);
  std::vector<std::string> archives;
  std::ranges::copy_if(files, std::back_inserter(archives),
                       [](const std::string& name) { return name.ends_with(".tar"); });
  if (!archives.empty()) {
    const std::string ending = webdataset_ending(folder / archives.front());
    if (!ending.empty()) return webdataset_message(folder, archives, ending);
  }
  for (const std::string& name : files) {
    const auto* const form =
        std::ranges::find_if(forms, [&](const Form& known) { return name.ends_with(known.ending); });
    if (form == forms.end()) continue;
    return fmt::format(
        "It contains {}, such as '{}', which 'make_shards images' does not read. Extract their pictures as JPEG or PNG "
        "files.",
        form->name, printable(name));
  }
  return {};
}

}  // namespace lockstep

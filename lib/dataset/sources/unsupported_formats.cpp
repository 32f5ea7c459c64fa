#include "dataset/sources/unsupported_formats.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/error.hpp"
#include "base/text/printable.hpp"
#include "dataset/sources/file_list.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view advice_on_arrays =
    "Download the files that 'make_shards --help' names. Or write the arrays as PNG files into one folder per class, "
    "and run 'make_shards images'.";

// Recognized by the ending of a file name, unless another file is more specific.
struct NamedForm {
  std::string_view ending;
  std::string_view name;
  std::string_view advice;
};
constexpr std::array named_forms = {
    NamedForm{".npz", "NumPy arrays (.npz)", advice_on_arrays},
    NamedForm{".npy", "NumPy arrays (.npy)", advice_on_arrays},
    NamedForm{".mat", "MATLAB arrays (.mat)", advice_on_arrays},
    NamedForm{".parquet", "Parquet tables", advice_on_arrays},
    NamedForm{".arrow", "Arrow tables", advice_on_arrays},
    NamedForm{".tfrecord", "TFRecord files", advice_on_arrays},
    NamedForm{".pkl", "pickled arrays", advice_on_arrays},
    NamedForm{".tar.gz", "archives", "Unpack them, and pass the folder that contains the files."},
    NamedForm{".tgz", "archives", "Unpack them, and pass the folder that contains the files."},
    NamedForm{".zip", "archives", "Unpack them, and pass the folder that contains the files."},
};

// The regular files of a folder, or the one file, sorted by name.
std::vector<std::string> file_names(const fs::path& source) {
  std::error_code reason;
  if (fs::is_regular_file(source, reason)) return {source.filename().string()};
  std::vector<std::string> names;
  for (fs::directory_iterator at(source, reason), end; !reason && at != end; at.increment(reason)) {
    std::error_code of_entry;
    if (at->is_regular_file(of_entry)) names.push_back(at->path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace

void refuse_unsupported_formats(const fs::path& source) {
  const std::vector<std::string> names = file_names(source);
  const auto has = [&](std::string_view name) { return std::ranges::find(names, name) != names.end(); };
  const auto refuse_version = [&](const char* version, const char* set, const char* file, const char* archive) {
    throw Error(Failure::usage,
                fmt::format("'{}' contains the {} version of {} ('{}'), which make_shards does not read. Download the "
                            "binary version, {}, from https://www.cs.toronto.edu/~kriz/cifar.html.",
                            source.string(), version, set, file, archive));
  };
  constexpr const char* of_cifar10 = "cifar-10-binary.tar.gz";
  constexpr const char* of_cifar100 = "cifar-100-binary.tar.gz";
  if (has("data_batch_1")) refuse_version("Python", "CIFAR-10", "data_batch_1", of_cifar10);
  if (has("data_batch_1.mat")) refuse_version("MATLAB", "CIFAR-10", "data_batch_1.mat", of_cifar10);
  if (has("train") && has("meta")) refuse_version("Python", "CIFAR-100", "train", of_cifar100);
  if (has("train.mat") && has("meta.mat")) refuse_version("MATLAB", "CIFAR-100", "train.mat", of_cifar100);
  for (const NamedForm& form : named_forms) {
    const auto found =
        std::ranges::find_if(names, [&](const std::string& name) { return name.ends_with(form.ending); });
    if (found == names.end()) continue;
    throw Error(Failure::usage, fmt::format("'{}' contains {} ('{}'), which make_shards does not read. {}",
                                            source.string(), form.name, printable(*found), form.advice));
  }
  require(
      !has(train_list) || !fs::is_directory(source), Failure::usage,
      "'{}' contains {}, a list of files, which is only read by 'make_shards cifar10', 'cifar100' and 'images'. Pass "
      "the folder that contains the listed files as --source.",
      source.string(), train_list);
}

void refuse_pickled(const fs::path& file, std::string_view bytes) {
  // Pickle protocols 2 to 5. No sample of CIFAR begins with 0x80, which is no label.
  const bool is_pickled = bytes.size() > 1 && bytes[0] == '\x80' && bytes[1] >= 2 && bytes[1] <= 5;
  require(!is_pickled, Failure::usage,
          "'{}' is a pickled file, as of the Python version of CIFAR, which make_shards does not read. Download the "
          "binary version from https://www.cs.toronto.edu/~kriz/cifar.html.",
          file.string());
}

}  // namespace lockstep

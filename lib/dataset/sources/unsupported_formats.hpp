// Recognizes published data formats that Lockstep does not read, so that messages can name them.
#pragma once

#include <filesystem>
#include <string_view>

namespace lockstep {

// Throws Error(usage) naming the format and a remedy if `source`, a folder or a file, is in one of these formats: the
// Python or MATLAB version of CIFAR, NumPy arrays, Parquet, TFRecord, an archive that is not unpacked, or a train.list
// of files.
void refuse_unsupported_formats(const std::filesystem::path& source);

// Throws Error(usage) if `bytes`, the content of `file`, are pickled: the Python version of CIFAR.
void refuse_pickled(const std::filesystem::path& file, std::string_view bytes);

}  // namespace lockstep

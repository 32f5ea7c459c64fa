// Recognizes published data formats that Lockstep does not read, so that messages can name them.
#pragma once

#include <filesystem>

namespace lockstep {

// Throws Error(usage) naming the format and a remedy if `source`, a folder or a file, is in one of these formats: the
// Python or MATLAB version of CIFAR, NumPy arrays, Parquet, TFRecord, or an archive that is not unpacked.
void refuse_unsupported_formats(const std::filesystem::path& source);

}  // namespace lockstep

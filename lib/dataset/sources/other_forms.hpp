// Forms in which data sets are published and which Lockstep does not read, so that a message can name them.
#pragma once

#include <filesystem>

namespace lockstep {

// Throws Error(usage) that names the form and says what to do where `source`, a folder or a file, holds one: the Python
// or MATLAB version of CIFAR, NumPy arrays, Parquet, TFRecord, or an archive that is not unpacked.
void refuse_other_forms(const std::filesystem::path& source);

}  // namespace lockstep

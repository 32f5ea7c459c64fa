// The output folder of a conversion, created for one set of options. A conversion can be resumed in it.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/io/descriptor.hpp"
#include "dataset/shards/convert.hpp"

namespace lockstep {

// Creates the folder, or checks that it was created from the same source with the same options, and removes partial
// files of a killed run. Call on one rank only. The returned descriptor locks the folder until it is closed, if the
// file system supports locks. Throws Error(usage) if the folder contains something else, or if another process is
// writing into it. `copies`: of training pictures, which --validation keeps together.
Descriptor prepare_conversion_folder(const SampleSource& source, std::int64_t copies, const ConvertOptions& options);

}  // namespace lockstep

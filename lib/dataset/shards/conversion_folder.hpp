// The folder that a conversion writes into: made for one set of options, and safe to come back to.
#pragma once

#include <filesystem>
#include <string>

#include "base/io/descriptor.hpp"
#include "dataset/shards/convert.hpp"

namespace lockstep {

// Makes the folder, or checks that it was begun with the same options, and removes what a killed run left half written.
// For one rank only. What it returns keeps others out until it is closed, where the file system can do that. Throws
// Error(usage) if the folder holds something else, or another process is writing into it.
Descriptor prepare_conversion_folder(const SourceDescription& source, std::int64_t training_samples,
                                     const ConvertOptions& options);

}  // namespace lockstep

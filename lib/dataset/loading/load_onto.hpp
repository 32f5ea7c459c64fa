// From shards on disk to the memory of the device that trains on them.
#pragma once

#include <cstdint>
#include <memory>

#include "dataset/loading/loader.hpp"
#include "device/device.hpp"

namespace lockstep {

// Where a GPU takes samples from.
enum class DataPlace : std::uint8_t {
  automatic,  // its own memory, if the split takes no more than a quarter of what is free there
  device,     // its own memory
  host,       // the host's: pixels travel ahead of need, beside the work on the part before
};

// Batches of `source` on `device`, which outlives the loader. The CPU reads shards where they lie, in the host's
// memory. Throws Error(usage) for DataPlace::device on a CPU, Error(out_of_memory) where a split does not fit.
std::unique_ptr<Loader> load_onto(Device& device, const LoaderSource& source, DataPlace place);
std::unique_ptr<Loader> load_onto_cpu(const LoaderSource& source, DataPlace place);

}  // namespace lockstep

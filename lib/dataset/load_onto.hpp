// From the host's memory, where loaders fill batches, to the device that trains on them.
#pragma once

#include <memory>

#include "dataset/loader.hpp"
#include "device/device.hpp"

namespace lockstep {

// What `host` gives, on `device`, which outlives it. On the CPU that is `host` itself; on a GPU parts travel ahead of
// need, beside the work on the part before.
std::unique_ptr<Loader> load_onto(Device& device, std::unique_ptr<Loader> host);

}  // namespace lockstep

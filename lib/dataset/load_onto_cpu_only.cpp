// The way to the device in a build without CUDA: there is none to go.
#include "dataset/load_onto.hpp"

namespace lockstep {

std::unique_ptr<Loader> load_onto(Device&, std::unique_ptr<Loader> host) { return host; }

}  // namespace lockstep

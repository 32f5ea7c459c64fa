// The way to the device in a build without CUDA: there is none to go.
#include "dataset/loading/load_onto.hpp"

namespace lockstep {

std::unique_ptr<Loader> load_onto(Device&, const LoaderSource& source, DataPlace place) {
  return load_onto_cpu(source, place);
}

}  // namespace lockstep

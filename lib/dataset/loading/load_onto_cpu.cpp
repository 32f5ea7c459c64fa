#include "base/error.hpp"
#include "dataset/loading/load_onto.hpp"

namespace lockstep {

std::unique_ptr<Loader> load_onto_cpu(const LoaderSource& source, DataPlace place) {
  require(place != DataPlace::device, Failure::usage,
          "the data cannot lie on a GPU, as this run computes on a CPU (--data-on device). Use --data-on auto?");
  return make_host_loader(source);
}

}  // namespace lockstep

// Sums a tensor over the ranks that it is started on.
#include <algorithm>
#include <memory>

#include "backend/backend.hpp"
#include "base/log.hpp"
#include "comm/mpi_session.hpp"

int main(int argc, char** argv) {
  const lockstep::MpiSession mpi(argc, argv);
  const lockstep::Communicator world(MPI_COMM_WORLD);
  lockstep::log::set_identity(world.rank(), "here");
  const std::unique_ptr<lockstep::Backend> backend = lockstep::open_backend({.name = "cpu"});
  const std::unique_ptr<lockstep::AllReducer> reducer = backend->make_reducer("auto", world, 12, lockstep::DType::f32);
  const lockstep::Tensor values = reducer->allocate(3);
  std::fill_n(values.as<float>(), 3, static_cast<float>(world.rank() + 1));
  reducer->start_sum(values);
  reducer->wait();
  lockstep::log::plain(fmt::format("sum over {} ranks: {}", world.size(), values.as<float>()[2]));
}

#include "search/trial/rank_places.hpp"

#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "comm/check_mpi.hpp"
#include "comm/mpi_session.hpp"
#include "job/leave_mpirun.hpp"

namespace lockstep {
namespace {

using NodeName = std::array<char, MPI_MAX_PROCESSOR_NAME>;

NodeName own_node() {
  NodeName name{};
  int length = 0;
  check_mpi(MPI_Get_processor_name(name.data(), &length), "name this node");
  return name;
}

// mpirun may have bound each rank to cores of its own.
void use_cores_of_all(MPI_Comm node) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  ::sched_getaffinity(0, sizeof cores, &cores);
  check_mpi(MPI_Allreduce(MPI_IN_PLACE, &cores, sizeof cores, MPI_BYTE, MPI_BOR, node), "join the ranks' cores");
  ::sched_setaffinity(0, sizeof cores, &cores);  // where it fails, this process keeps its own
}

std::vector<RankPlaces::Node> count_by_node(const std::vector<NodeName>& names) {
  std::vector<RankPlaces::Node> nodes;
  for (const NodeName& name : names) {
    const auto known = std::ranges::find(nodes, std::string(name.data()), &RankPlaces::Node::name);
    if (known == nodes.end()) {
      nodes.push_back({name.data(), 1});
    } else {
      ++known->ranks;
    }
  }
  nodes.front().name.clear();
  return nodes;
}

}  // namespace

std::optional<RankPlaces> take_rank_places(int& argc, char**& argv) {
  std::vector<NodeName> names;
  int rank = 0;
  {
    const MpiSession mpi(argc, argv);
    int ranks = 1;
    check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "number the ranks");
    check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &ranks), "count the ranks");
    MPI_Comm node = MPI_COMM_NULL;
    check_mpi(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node),
              "group the ranks of a node");
    use_cores_of_all(node);
    check_mpi(MPI_Comm_free(&node), "free a group");
    const NodeName own = own_node();
    names.resize(static_cast<std::size_t>(ranks));
    check_mpi(MPI_Gather(own.data(), sizeof own, MPI_CHAR, names.data(), sizeof own, MPI_CHAR, 0, MPI_COMM_WORLD),
              "gather the ranks' nodes");
  }
  if (rank != 0) return std::nullopt;
  leave_mpirun();
  return RankPlaces{count_by_node(names)};
}

}  // namespace lockstep

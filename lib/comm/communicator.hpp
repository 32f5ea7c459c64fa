// The control plane: blocking communication of small host values between ranks, with MPI on every machine.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// A group of ranks. Without a launcher it has one rank. Copies share the MPI communicator. Messages between two of its
// ranks: point_to_point.hpp.
class Communicator {
 public:
  // Collective. Wraps `handle`, which the caller still owns.
  explicit Communicator(MPI_Comm handle);

  int rank() const { return rank_; }
  int size() const { return size_; }
  // This rank's position among the ranks of its node, and their number. Not collective: determined at construction.
  int local_rank() const { return local_rank_; }
  int local_size() const { return local_size_; }
  MPI_Comm handle() const { return *handle_; }

  // All of the following are collective. A waiting rank sleeps between polls, so that it leaves the cores to other
  // ranks.
  void barrier() const;
  void broadcast(std::span<std::byte> bytes, int root) const;
  std::string broadcast(std::string text, int root) const;
  double sum(double value) const;
  double max(double value) const;
  std::vector<std::string> gather(std::string_view text, int root) const;  // by rank on root, empty elsewhere
  std::vector<std::string> all_gather(std::string_view text) const;        // by rank
  // For ranks that arrive at nearly the same time: polls without a pause first. `all` gets each rank's `own`, by rank.
  void all_gather(std::span<const double> own, std::span<double> all) const;
  Communicator split(int color, int key) const;  // ranks of equal color, ordered by key
  Communicator node() const;                     // the ranks that share memory with this one

 private:
  std::shared_ptr<MPI_Comm> handle_;
  int rank_ = 0;
  int size_ = 1;
  int local_rank_ = 0;
  int local_size_ = 1;
};

}  // namespace lockstep

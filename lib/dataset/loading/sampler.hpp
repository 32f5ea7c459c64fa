// Sample order of an epoch, without a shuffled list.
//
// A permutation computed as a function: it needs no memory, can start anywhere, and is the same on every rank.
#pragma once

#include <cstdint>

namespace lockstep {

// A bijection of [0, count), different for each key and stream.
//
// A Feistel network over the smallest even number of bits that can hold count (Luby and Rackoff 1988), with Philox as
// its round function. Values outside [0, count) are encrypted again until they are inside (cycle walking: Black and
// Rogaway, "Ciphers with arbitrary finite domains", 2002), at most four times on average.
class Permutation {
 public:
  // `stream` is the upper half of Philox's counter.
  Permutation(std::int64_t count, std::uint64_t key, std::uint64_t stream);

  std::int64_t at(std::int64_t place) const;  // 0 <= place < count

 private:
  std::uint64_t encrypt(std::uint64_t value) const;

  std::uint64_t count_;
  std::uint64_t key_;
  std::uint64_t stream_;
  int half_bits_;
};

// A bijection of [0, samples), different for each (seed, epoch).
class SampleOrder {
 public:
  SampleOrder(std::int64_t samples, std::uint64_t seed, std::int64_t epoch);

  std::int64_t sample_at(std::int64_t position) const { return permutation_.at(position); }

 private:
  Permutation permutation_;
};

}  // namespace lockstep

// The embedding tables of a network over all ranks, in one of two forms:
//
//   replicated   every rank has all rows, and adds the gradients of all ranks
//   served       the last ranks are parameter servers (Li et al. 2014), each with a block of rows of each table. Other
//                ranks have no rows: they ask for those of a step, and send their gradients to the servers
//
// Both give the same bits. A step:
//
//   tables.prefetch(rows_of_step);                collective
//   tables.fetch(table, rows, values);            forward, any number of times
//   tables.sums()[table].add(row, gradient);      backward, for each occurrence of a row
//   if (!tables.sum_over_ranks()) ...;            collective; a gradient is not finite or too large
//   tables.update();                              the end of the step
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "embedding/distributed_table.hpp"

namespace lockstep {

// Rows of each table, in any order and number.
using RowLists = std::vector<std::vector<std::int64_t>>;

class EmbeddingTables {
 public:
  EmbeddingTables(const EmbeddingTables&) = delete;
  EmbeddingTables& operator=(const EmbeddingTables&) = delete;
  virtual ~EmbeddingTables() = default;

  std::deque<DistributedTable>& tables() { return tables_; }
  const std::deque<DistributedTable>& tables() const { return tables_; }
  // Bytes of the rows that this rank holds, with the state of the optimizer.
  std::int64_t bytes() const;

  // Collective. `rows` are those that this rank fetches until the next prefetch() or update(). Throws Error(bad_data)
  // if one is beyond its table, and Error as RowMessage.
  virtual void prefetch(const RowLists& rows) = 0;
  // Not collective. As RowTable::fetch(), of prefetched rows.
  virtual void fetch(std::size_t table, std::span<const std::int64_t> rows, std::span<float> values) const = 0;

  // The gradients of this rank's samples, by table. Until sum_over_ranks().
  std::span<RowSums> sums() { return sums_; }
  void clear_sums();
  // Collective. False on all ranks if a value was NaN or outside the range of the fixed point. Throws Error as
  // RowMessage.
  virtual bool sum_over_ranks() = 0;
  // Not collective. One step of the optimizer for the rows that this rank holds, after sum_over_ranks().
  virtual void update() = 0;

 protected:
  // `servers`: 0 if every rank has all rows. `terms` as that of RowSums.
  EmbeddingTables(const Communicator& world, int servers, std::span<const TableShape> shapes,
                  const RowOptimizerOptions& options, int terms);
  // The message that `rank` gets: this rank's gradients of the rows that it holds.
  void append_sums(std::string& message, int rank) const;
  // Adds those of such a message. Throws Error as RowMessage.
  void add_sums(std::span<RowSums> sums, const std::string& text, int sender) const;
  void update(std::span<const RowSums> sums);

  Communicator world_;
  std::deque<DistributedTable> tables_;
  std::vector<RowSums> sums_;
};

// Collective. `servers`: how many of the ranks are servers; 0: replicated. At least one rank is none. `terms`: the
// largest number of gradients that a step adds to one row, over all ranks. Throws as row_rule().
std::unique_ptr<EmbeddingTables> make_embedding_tables(const Communicator& world, int servers,
                                                       std::span<const TableShape> shapes,
                                                       const RowOptimizerOptions& options, int terms);

}  // namespace lockstep

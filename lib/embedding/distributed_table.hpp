// An embedding table over all ranks: every rank holds all rows, or a block of them.
//
// The checkpoint of a table is the same in both cases. Rank 0 writes and reads it, in blocks of rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/streamed_array.hpp"
#include "comm/communicator.hpp"
#include "embedding/row_blocks.hpp"
#include "embedding/row_table.hpp"

namespace lockstep {

class DistributedTable {
 public:
  // Without `blocks`, every rank has all rows. Throws as row_rule(). `world` exchanges no other messages between two
  // ranks meanwhile.
  DistributedTable(Communicator world, const TableShape& shape, const RowOptimizerOptions& options,
                   std::optional<RowBlocks> blocks = std::nullopt);

  // The rows that this rank holds.
  RowTable& held() { return table_; }
  const RowTable& held() const { return table_; }
  RowRange held_by(int rank) const;
  // Sets each held value to value_of(its index in the whole table). Before the first step.
  template <class ValueOf>
  void fill(const ValueOf& value_of) {
    const std::span<float> values = table_.array(0);
    const std::int64_t first = table_.held().first * table_.width();
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = value_of(first + static_cast<std::int64_t>(i));
  }

  // Reading the following is collective. This outlives them.
  // The complete state of all rows, as RowTable::state().
  std::vector<StreamedArray> state() const;
  // Values of all rows with all decays, under the table's name.
  StreamedArray values() const;

  // Collective. `state` is that of all rows, on rank 0; those of other ranks are ignored. Throws AgreedError as
  // RowTable::assign().
  void assign(const RowTable::Arrays& state);
  // Collective. The values of all rows, on rank 0; other ranks pass nothing. The state is that before the first step.
  void assign_values(std::span<const float> values);

 private:
  template <class Copy>
  void gather(std::int64_t first, std::span<float> values, std::int64_t width, const Copy& copy) const;
  void scatter(std::size_t array, std::int64_t width, std::span<const float> whole);

  Communicator world_;
  std::optional<RowBlocks> blocks_;
  RowTable table_;
};

}  // namespace lockstep

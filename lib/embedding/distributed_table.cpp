#include "embedding/distributed_table.hpp"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <utility>

#include "comm/point_to_point.hpp"
#include "runtime/failure/contained_failure.hpp"
#include "runtime/watch/rank_status.hpp"

namespace lockstep {
namespace {

constexpr int rows_tag = 0;

// `width` values per row, from row `first` on.
template <class Value>
std::span<Value> rows_of(std::span<Value> values, const RowRange& rows, std::int64_t first, std::int64_t width) {
  return values.subspan(static_cast<std::size_t>((rows.first - first) * width),
                        static_cast<std::size_t>(rows.count * width));
}

}  // namespace

DistributedTable::DistributedTable(Communicator world, const TableShape& shape, const RowOptimizerOptions& options,
                                   std::optional<RowBlocks> blocks)
    : world_(std::move(world)),
      blocks_(blocks),
      table_(shape, blocks ? blocks->of(world_.rank()) : RowRange{0, shape.rows}, options) {}

RowRange DistributedTable::held_by(int rank) const { return blocks_ ? blocks_->of(rank) : RowRange{0, table_.rows()}; }

// Collective. Each rank passes those of the rows that it holds to `copy(rows, their place in values)`, and sends them
// to rank 0.
template <class Copy>
void DistributedTable::gather(std::int64_t first, std::span<float> values, std::int64_t width, const Copy& copy) const {
  const RowRange range{first, std::ssize(values) / width};
  const int holders = blocks_ ? world_.size() : 1;
  for (int rank = 0; rank < holders; ++rank) {
    const RowRange rows = overlap(range, held_by(rank));
    if (rows.count == 0) continue;
    const std::span<float> part = rows_of(values, rows, first, width);
    if (rank == world_.rank()) copy(rows, part);
    if (rank == 0) continue;
    if (rank == world_.rank() || world_.rank() == 0) rank_status::enter(Phase::gathering);
    if (rank == world_.rank()) send<float>(world_, part, 0, rows_tag);
    if (world_.rank() == 0) receive<float>(world_, part, rank, rows_tag);
  }
}

std::vector<StreamedArray> DistributedTable::state() const {
  std::vector<StreamedArray> state;
  std::size_t index = 0;
  for (const RowTable::Array& array : table_.arrays()) {
    state.push_back({array.name, table_.rows(), array.width,
                     [this, width = array.width, index](std::int64_t first, std::span<float> values) {
                       gather(first, values, width, [&](const RowRange& rows, std::span<float> to) {
                         const std::span<const float> held = table_.array(index);
                         std::ranges::copy(rows_of(held, rows, table_.held().first, width), to.begin());
                       });
                     }});
    ++index;
  }
  state.push_back({table_.steps_name(), 1, 1, [this](std::int64_t /*first*/, std::span<float> values) {
                     values[0] = static_cast<float>(table_.steps());
                   }});
  return state;
}

StreamedArray DistributedTable::values() const {
  return {table_.name(), table_.rows(), table_.width(), [this](std::int64_t first, std::span<float> values) {
            gather(first, values, table_.width(), [&](const RowRange& rows, std::span<float> to) {
              std::vector<std::int64_t> numbers(static_cast<std::size_t>(rows.count));
              std::iota(numbers.begin(), numbers.end(), rows.first);
              table_.fetch(numbers, to);
            });
          }};
}

// Collective. `whole`: all rows of the array, on rank 0.
void DistributedTable::scatter(std::size_t array, std::int64_t width, std::span<const float> whole) {
  std::vector<float> values;
  for_each_block(table_.rows(), width, [&](std::int64_t first, std::int64_t count) {
    const RowRange range{first, count};
    values.resize(static_cast<std::size_t>(count * width));
    if (world_.rank() == 0) std::ranges::copy(rows_of(whole, range, 0, width), values.begin());
    world_.broadcast(std::as_writable_bytes(std::span(values)), 0);
    const RowRange own = overlap(range, table_.held());
    if (own.count == 0) return;
    std::ranges::copy(rows_of(std::span<const float>(values), own, first, width),
                      rows_of(table_.array(array), own, table_.held().first, width).begin());
  });
}

void DistributedTable::assign(const RowTable::Arrays& state) {
  on_rank_0(world_, [&] { table_.require_state(state); });
  const auto of_rank_0 = [&](const std::string& name) {
    return world_.rank() == 0 ? std::span<const float>(state.at(name)) : std::span<const float>();
  };
  std::size_t index = 0;
  for (const RowTable::Array& array : table_.arrays()) scatter(index++, array.width, of_rank_0(array.name));
  float steps = world_.rank() == 0 ? state.at(table_.steps_name())[0] : 0;
  world_.broadcast(std::as_writable_bytes(std::span(&steps, 1)), 0);
  table_.set_steps(static_cast<std::int64_t>(steps));
}

void DistributedTable::assign_values(std::span<const float> values) {
  assert(world_.rank() != 0 || std::ssize(values) == table_.rows() * table_.width());
  for (std::size_t index = 1; index < table_.arrays().size(); ++index) std::ranges::fill(table_.array(index), 0.0F);
  table_.set_steps(0);
  scatter(0, table_.width(), values);
}

}  // namespace lockstep

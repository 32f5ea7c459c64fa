#include "embedding/embedding_tables.hpp"

#include <algorithm>
#include <cassert>
#include <optional>
#include <string>

#include "comm/all_to_all.hpp"
#include "comm/server_all_reducer.hpp"

namespace lockstep {
namespace {

class ReplicatedTables final : public EmbeddingTables {
 public:
  ReplicatedTables(const Communicator& world, std::span<const TableShape> shapes, const RowOptimizerOptions& options,
                   int terms)
      : EmbeddingTables(world, 0, shapes, options, terms) {}

  void prefetch(const RowLists& /*rows*/) override {}
  void fetch(std::size_t table, std::span<const std::int64_t> rows, std::span<float> values) const override {
    tables_[table].held().fetch(rows, values);
  }
  bool sum_over_ranks() override {
    if (world_.size() > 1) gather_sums();
    return std::ranges::all_of(sums_, &RowSums::is_in_range);
  }
  void update() override { EmbeddingTables::update(sums_); }

 private:
  // One message from each rank, for all tables.
  void gather_sums() {
    std::string own;
    append_sums(own, world_.rank());
    const std::vector<std::string> messages = world_.all_gather(own);
    for (int rank = 0; rank < world_.size(); ++rank) {
      if (rank != world_.rank()) add_sums(sums_, messages[static_cast<std::size_t>(rank)], rank);
    }
  }
};

// All ranks take part in three exchanges (comm/all_to_all.hpp): of rows, of their values, and of gradients. Each
// message has all tables, one after another.
class ServedTables final : public EmbeddingTables {
 public:
  ServedTables(const Communicator& world, int servers, std::span<const TableShape> shapes,
               const RowOptimizerOptions& options, int terms)
      : EmbeddingTables(world.split(0, world.rank()), servers, shapes, options, terms),
        held_sums_(sums_),
        prefetched_(shapes.size()) {}

  void prefetch(const RowLists& rows) override {
    for (std::size_t table = 0; table < tables_.size(); ++table) {
      for (const std::int64_t row : rows[table]) require_row(tables_[table].held().shape(), row);
      prefetched_[table].rows = rows[table];
      std::ranges::sort(prefetched_[table].rows);
      const auto duplicates = std::ranges::unique(prefetched_[table].rows);
      prefetched_[table].rows.erase(duplicates.begin(), duplicates.end());
      prefetched_[table].values.clear();
    }
    const auto write_request = [&](std::string& message, int rank) {
      for (std::size_t table = 0; table < tables_.size(); ++table) {
        const std::vector<std::int64_t> asked = prefetched_rows(table, rank);
        append_numbers<std::int64_t>(message, std::vector<std::int64_t>{std::ssize(asked)});
        append_numbers<std::int64_t>(message, asked);
      }
    };
    const std::vector<std::string> requests = all_to_all(world_, messages(write_request));
    const auto write_reply = [&](std::string& message, int rank) {
      RowMessage request{requests[static_cast<std::size_t>(rank)], rank};
      for (const DistributedTable& table : tables_) append_values(message, table.held(), request);
      request.end();
    };
    const std::vector<std::string> replies = all_to_all(world_, messages(write_reply));
    for (int rank = 0; rank < world_.size(); ++rank) {
      RowMessage reply{replies[static_cast<std::size_t>(rank)], rank};
      for (std::size_t table = 0; table < tables_.size(); ++table) {
        const auto width = static_cast<std::size_t>(tables_[table].held().width());
        const std::vector<float> values = reply.take<float>(prefetched_rows(table, rank).size() * width);
        prefetched_[table].values.insert(prefetched_[table].values.end(), values.begin(), values.end());
      }
      reply.end();
    }
  }

  void fetch(std::size_t table, std::span<const std::int64_t> rows, std::span<float> values) const override {
    const Rows& from = prefetched_[table];
    const std::int64_t width = tables_[table].held().width();
    assert(std::ssize(values) == std::ssize(rows) * width);
    auto to = values.begin();
    for (const std::int64_t row : rows) {
      const auto found = std::ranges::lower_bound(from.rows, row);
      assert(found != from.rows.end() && *found == row);
      to = std::copy_n(from.values.begin() + (found - from.rows.begin()) * width, width, to);
    }
  }

  bool sum_over_ranks() override {
    const auto write_sums = [&](std::string& message, int rank) { append_sums(message, rank); };
    const std::vector<std::string> received = all_to_all(world_, messages(write_sums));
    for (RowSums& sums : held_sums_) sums.clear();
    for (int rank = 0; rank < world_.size(); ++rank) {
      add_sums(held_sums_, received[static_cast<std::size_t>(rank)], rank);
    }
    return std::ranges::all_of(held_sums_, &RowSums::is_in_range);
  }

  void update() override {
    EmbeddingTables::update(held_sums_);
    for (Rows& rows : prefetched_) rows = {};
  }

 private:
  // Different rows in ascending order, so those of one rank lie together, in the order of ranks.
  struct Rows {
    std::vector<std::int64_t> rows;
    std::vector<float> values;  // [rows, width]
  };

  // One for each rank.
  template <class Write>
  std::vector<std::string> messages(const Write& write) const {
    std::vector<std::string> messages(static_cast<std::size_t>(world_.size()));
    for (int rank = 0; rank < world_.size(); ++rank) write(messages[static_cast<std::size_t>(rank)], rank);
    return messages;
  }

  // Those that `rank` holds.
  std::vector<std::int64_t> prefetched_rows(std::size_t table, int rank) const {
    const RowRange held = tables_[table].held_by(rank);
    const std::vector<std::int64_t>& rows = prefetched_[table].rows;
    return {std::ranges::lower_bound(rows, held.first), std::ranges::lower_bound(rows, held.end())};
  }

  static void append_values(std::string& message, const RowTable& table, RowMessage& request) {
    const std::vector<std::int64_t> rows = request.take_rows(table.held());
    std::vector<float> values(rows.size() * static_cast<std::size_t>(table.width()));
    table.fetch(rows, values);
    append_numbers<float>(message, values);
  }

  std::vector<RowSums> held_sums_;  // over all ranks, of the rows that this rank holds
  std::vector<Rows> prefetched_;
};

}  // namespace

EmbeddingTables::EmbeddingTables(const Communicator& world, int servers, std::span<const TableShape> shapes,
                                 const RowOptimizerOptions& options, int terms)
    : world_(world) {
  for (const TableShape& shape : shapes) {
    std::optional<RowBlocks> blocks;
    if (servers > 0) blocks = RowBlocks{shape.rows, trainers_of(world.size(), servers), servers};
    tables_.emplace_back(world, shape, options, blocks);
    sums_.emplace_back(shape.width, terms);
  }
}

void EmbeddingTables::append_sums(std::string& message, int rank) const {
  for (std::size_t table = 0; table < tables_.size(); ++table) {
    sums_[table].append_to(message, tables_[table].held_by(rank));
  }
}

void EmbeddingTables::add_sums(std::span<RowSums> sums, const std::string& text, int sender) const {
  RowMessage message{text, sender};
  for (std::size_t table = 0; table < tables_.size(); ++table) {
    sums[table].add_from(message, tables_[table].held_by(world_.rank()));
  }
  message.end();
}

std::int64_t EmbeddingTables::bytes() const {
  std::int64_t bytes = 0;
  for (const DistributedTable& table : tables_) bytes += table.held().bytes();
  return bytes;
}

void EmbeddingTables::clear_sums() {
  for (RowSums& sums : sums_) sums.clear();
}

void EmbeddingTables::update(std::span<const RowSums> sums) {
  for (std::size_t table = 0; table < tables_.size(); ++table) tables_[table].held().update(sums[table].gradients());
}

std::unique_ptr<EmbeddingTables> make_embedding_tables(const Communicator& world, int servers,
                                                       std::span<const TableShape> shapes,
                                                       const RowOptimizerOptions& options, int terms) {
  if (servers == 0) return std::make_unique<ReplicatedTables>(world, shapes, options, terms);
  return std::make_unique<ServedTables>(world, servers, shapes, options, terms);
}

}  // namespace lockstep

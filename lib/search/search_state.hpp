// The state of a search: decisions, results, and orders that are open. All of it is in the journal.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "files/folder/folder_lock.hpp"
#include "search/custom/custom_searcher.hpp"
#include "search/hparams/trial_events.hpp"
#include "search/journal/journal.hpp"
#include "search/journal/search_folder.hpp"
#include "search/journal/shared_search.hpp"
#include "search/searcher.hpp"
#include "search/space/space.hpp"
#include "search/trial/trial_record.hpp"
#include "search/trial/trial_result.hpp"

namespace lockstep {

// What a search may have besides its space and folder. All of them outlive it.
struct SearchParts {
  FolderLock* lock = nullptr;      // of the folder. Null: processes share it
  SharedSearch* shared = nullptr;  // null: this process works alone
  TrialEvents* events = nullptr;   // told of each trial and result, also those of the journal. Null: no --tensorboard
};

class SearchState {
 public:
  // Replays the journal, or starts it. The caller holds the folder's lock, unless other processes share the search.
  // `space` and `parts` outlive this. Throws Error(usage) if the journal belongs to another space, if there are trials
  // but no journal, or if a trial that goes on has no folder of its own; Error(bad_data) if the decisions are not those
  // of this version; as Journal.
  SearchState(const Space& space, const SearchFolder& folder, SearchParts parts);

  // Orders without a result; some of them are running. Promotions come first, so that good trials end early.
  const std::vector<Order>& open_orders() const { return open_; }

  // In a shared search, results and restarts are added between these two. begin_decision() waits for the journal's
  // lock, and adds what other processes have decided. Throws as JournalLock and Journal::read_new().
  void begin_decision();
  void end_decision() { decision_.reset(); }
  // Whether other processes have decided something since.
  bool has_news() const { return journal_.has_changed(); }

  // Adds the result of an open order, and returns the decisions that follow, once they are on the disk. Throws as
  // FolderLock::require_held() and Journal::append().
  std::vector<Order> add_result(const Order& order, std::int64_t steps, const TrialEnd& end);
  // Adds a restart of the trial of an open order. Throws as add_result().
  void add_restart(const Order& order, const TrialEnd& end);
  // Adds an answer of custom(), once it is on the disk. Throws as CustomSearcher::follow() and add_result().
  void add_answer(nlohmann::json line);
  // The custom searcher. Null: a searcher of this library decides.
  CustomSearcher* custom() const { return custom_.get(); }
  // All trials have ended.
  void finish();
  // An order whose result is known: it is repeated until it is closed. The journal does not have it.
  void reopen(const Order& order) { add({order}); }
  void close(const Order& order);

  const std::map<std::int64_t, TrialRecord>& trials() const { return trials_; }
  // Whether there was a journal.
  bool is_continued() const { return !journal_.lines().empty(); }

 private:
  nlohmann::json recorded_space() const;
  void replay(const SearchFolder& folder);
  void replay_line(const nlohmann::json& line);
  void append(nlohmann::json line);
  void require_folders(const SearchFolder& folder) const;
  void add(const std::vector<Order>& orders);
  std::vector<OptionWord> settings_of(std::int64_t trial) const;
  nlohmann::json json_of(const std::vector<Order>& orders) const;
  std::vector<Order> record(const Order& order, std::int64_t steps, const TrialEnd& end);

  const Space& space_;
  FolderLock* lock_;
  SharedSearch* shared_;
  std::unique_ptr<JournalLock> decision_;  // between begin_decision() and end_decision()
  Journal journal_;
  std::int64_t line_count_ = 0;  // of the journal, without lines that do not count
  Searcher searcher_;
  std::unique_ptr<CustomSearcher> custom_;
  TrialEvents* events_;
  std::vector<Order> open_;
  std::map<std::int64_t, TrialRecord> trials_;
};

}  // namespace lockstep

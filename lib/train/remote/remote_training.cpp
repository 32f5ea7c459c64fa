#include "train/remote/remote_training.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "base/clock.hpp"
#include "base/current_error.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/net/link_seal.hpp"
#include "base/text/json_text.hpp"
#include "run/summary.hpp"
#include "runtime/watch/rank_status.hpp"
#include "step/remote_trainer_sync.hpp"
#include "train/loop/training_loop.hpp"
#include "train/opening/sample_loader.hpp"
#include "train/remote/offer.hpp"
#include "train/remote/server_contact.hpp"

namespace lockstep {
namespace {

using namespace std::chrono_literals;

void stop_if_asked(const Session& session, const char* meanwhile) {
  rank_status::mark_progress();
  const int request = session.signals == nullptr ? 0 : session.signals->request();
  require(request == 0, Failure::stopped_early, "stopped {} ({}).", meanwhile, signal_name(request));
}

void require_own_world(const Session& session) {
  require(session.world.size() == 1, Failure::usage,
          "--trainers and --trainer-of are for programs of one rank, but this one has {}. Start the server and each "
          "trainer by itself.",
          session.world.size());
}

void require_host_memory(const Session& session) {
  require(session.device().steps_ahead() == 0, Failure::usage,
          "--trainers and --trainer-of are for CPUs only. Use --device cpu, or --sync all-reduce without them.");
}

struct Connection {
  std::unique_ptr<SealedSocket> socket;
  std::string why_not;  // if there is none
};

// Each attempt begins with another address, because a stranger or lost packets at one may take all of its time.
Connection try_to_connect(const RunOptions& own, std::size_t attempt) {
  const FoundContact found = find_contact(own.trainer_of);
  if (!found.contact) return {nullptr, found.why_not};
  const ServerContact& contact = *found.contact;
  std::vector<std::string> addresses = addresses_that_lead_to(contact.node, addresses_of_this_node());
  const std::string all = fmt::format("{}", fmt::join(addresses, ", "));
  if (addresses.size() > 1) {
    std::ranges::rotate(addresses, addresses.begin() + static_cast<std::ptrdiff_t>(attempt % addresses.size()));
  }
  // The watcher, which has the same limit, would otherwise be the first to complain.
  const auto longest = own.hang_timeout_seconds > 0 ? std::min(5.0, own.hang_timeout_seconds / 4) : 5.0;
  std::optional<AuthenticatedPeer> peer = connect_to_node(
      addresses, contact.port, contact.token, std::chrono::milliseconds(static_cast<std::int64_t>(1000 * longest)));
  if (peer) return {std::move(peer->socket), ""};
  return {nullptr, fmt::format("the server at {}, port {}, does not answer", all, contact.port)};
}

bool is_done(const std::filesystem::path& output) {
  const std::optional<Summary> summary = read_summary(output);
  return summary && summary->state == RunState::done;
}

// Throws TrainingEnded if the training is done and nobody continues it.
std::unique_ptr<SealedSocket> connect(const Session& session, const RunOptions& own) {
  constexpr double silent_seconds = 5;
  const double limit = own.hang_timeout_seconds;
  bool has_told = false;
  const Stopwatch watch;
  for (std::size_t attempt = 0;; ++attempt) {
    Connection connection = try_to_connect(own, attempt);
    if (connection.socket) return std::move(connection.socket);
    stop_if_asked(session, "before the server was there");
    if (limit > 0 && watch.seconds() >= limit) {
      if (is_done(own.trainer_of)) throw TrainingEnded(0, "");
      throw Error(
          Failure::out_of_step,
          fmt::format("no server has answered for {:g} seconds (--hang-timeout): {}. Start it with --sync ps or "
                      "ps-async, --trainers and --output '{}'.",
                      limit, connection.why_not, own.trainer_of.string()));
    }
    if (watch.seconds() >= silent_seconds && !std::exchange(has_told, true)) {
      log::info("waiting for the server of '{}'{}: {}{}.", own.trainer_of.string(),
                limit > 0 ? fmt::format(", for at most {:g} seconds (--hang-timeout)", limit) : "", connection.why_not,
                is_done(own.trainer_of) ? ". The training is done" : "");
    }
    std::this_thread::sleep_for(200ms);
  }
}

// What a trainer does while it waits for the server. A job may tell both to stop at the same time. So the trainer
// completes the micro-batches of a step, for which the server would wait, and between two steps it gives the server
// time to end the training.
class TrainerPatience {
 public:
  TrainerPatience(const Session& session, double hang_timeout_seconds)
      : session_(session), limit_(hang_timeout_seconds) {}

  void operator()(TrainerWait wait, double seconds) {
    rank_status::mark_progress();
    if (session_.signals != nullptr && session_.signals->request() != 0) {
      if (!since_request_) since_request_.emplace();
      const bool has_time = since_request_->seconds() < stop_seconds;
      if (!has_time && (wait == TrainerWait::between_steps || seconds > stop_seconds)) {
        stop_if_asked(session_, "between two steps");
      }
    }
    if (limit_ <= 0 || seconds < limit_) {
      has_warned_ = false;
    } else if (!std::exchange(has_warned_, true)) {
      log::warning(
          "the server has sent nothing for {:g} seconds (--hang-timeout). It may be in a long test. If not, check its "
          "process. This trainer waits on.",
          limit_);
    }
  }

 private:
  static constexpr double stop_seconds = 2;
  const Session& session_;
  double limit_;
  std::optional<Stopwatch> since_request_;
  bool has_warned_ = false;
};

// Computes until the server ends the training, which throws.
[[noreturn]] void compute(const Session& session, const Recipe& recipe, const RunOptions& run, const TrainingData& data,
                          Learner& learner, RemoteTrainerSync& sync) {
  std::unique_ptr<Loader> loader;
  PictureSize size;
  while (true) {
    const std::int64_t step = sync.take_work();
    const PictureSize needed = training_rules(recipe.images, data.manifest(), step / data.length.steps_per_epoch).size;
    if (loader == nullptr || size != needed) {
      loader.reset();  // first, so that its memory can be reused
      learner.step.discard_graphs();
      loader = load_samples(session, recipe, run, data, sync, step);
      size = needed;
    }
    learner.step.start(*loader, step, data.rates(step));
    learner.step.finish();
  }
}

void train_until_end(const Session& session, JoinedServer& joined) {
  const Recipe& recipe = joined.settings.recipe();
  const RunOptions& run = joined.settings.run();
  const TrainingScope scope(session, std::nullopt);
  require_host_memory(session);
  const TrainingData data = open_data(session.world, recipe, run, nullptr, scope.stops);
  Learner learner(session, recipe, run, data, nullptr, {.server = joined.server.get()});
  require_same_training(joined.offer, data, learner.model);
  log::info("trainer: of '{}', {} on {}", run.trainer_of.string(), learner.model.options.name,
            session.device().description());
  compute(session, recipe, run, data, learner, dynamic_cast<RemoteTrainerSync&>(*learner.sync));
}

}  // namespace

std::unique_ptr<RemoteTrainers> make_remote_trainers(const Session& session, const RunOptions& run) {
  if (run.sums.trainers == 0) return nullptr;
  require_own_world(session);
  require_host_memory(session);
  auto trainers = std::make_unique<RemoteTrainers>(draw_secret(), run.hang_timeout_seconds);
  require(trainers->is_open(), Failure::other, "cannot listen on a TCP port for trainers. Check the node's network.");
  return trainers;
}

TrainingOutcome train_with_trainers(OpenedTraining& training) {
  RemoteTrainers& trainers = *training.trainers;
  trainers.set_offer(offer_to_trainers(training));
  PublishedContact contact(training.run.output, {addresses_of_this_node(), trainers.port(), trainers.token()});
  trainers.set_while_waiting([&](int count) {
    rank_status::mark_progress();
    contact.renew_if_changed();
    if (count > 0) return;
    // Of --sync ps, which saves them, the sentence is not used (step/step_given_up).
    stop_if_asked(training.session, "while it waited for trainers; steps since the last checkpoint are lost");
  });
  try {
    TrainingOutcome outcome = TrainingLoop(training).run();
    trainers.end(outcome.failure ? static_cast<int>(*outcome.failure) : 0, outcome.sentence);
    return outcome;
  } catch (const Error& error) {
    trainers.end(error.exit_code(), error.what());
    throw;
  }
}

JoinedServer join_server(const Session& session, const RunOptions& own) {
  require_own_world(session);
  rank_status::enter(Phase::meeting);
  auto server = std::make_unique<RemoteServer>(connect(session, own), log::host(),
                                               TrainerPatience(session, own.hang_timeout_seconds));
  nlohmann::json offer = try_parse_json(server->offer());
  try {
    ValidSettings settings = accept_offer(offer, session, own);
    return {std::move(server), std::move(offer), std::move(settings)};
  } catch (const Error& error) {
    server->say_goodbye(error.what());
    throw;
  }
}

Ending ending_of(const TrainingEnded& end) {
  if (end.code() == 0) {
    log::info("the training is done");
    return {};
  }
  return {end.code(), fmt::format("the server has ended this trainer: {}", end.what())};
}

Ending train_for_server(const Session& session, JoinedServer& joined) {
  try {
    train_until_end(session, joined);
    return {};
  } catch (const TrainingEnded& end) {
    const Ending ending = ending_of(end);
    if (ending.code == static_cast<int>(Failure::stopped_early)) log::info(ending.sentence);
    return ending;
  } catch (const Error& error) {
    joined.server->say_goodbye(error.what());
    if (error.failure() == Failure::stopped_early) log::info(error.what());
    return {error.exit_code(), error.what()};
  }
}

}  // namespace lockstep

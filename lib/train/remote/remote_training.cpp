#include "train/remote/remote_training.hpp"

#include <chrono>
#include <thread>
#include <utility>

#include "base/clock.hpp"
#include "base/current_error.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/net/link_seal.hpp"
#include "base/text/json_text.hpp"
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

// Null if there is no server yet.
std::unique_ptr<SealedSocket> try_to_connect(const std::filesystem::path& output) {
  const std::optional<ServerContact> contact = find_contact(output);
  if (!contact) return nullptr;
  const std::vector<std::string> addresses = addresses_that_lead_to(contact->node, addresses_of_this_node());
  std::optional<AuthenticatedPeer> peer = connect_to_node(addresses, contact->port, contact->token, 5s);
  return peer ? std::move(peer->socket) : nullptr;
}

std::unique_ptr<SealedSocket> connect(const Session& session, const RunOptions& own) {
  const Stopwatch watch;
  while (true) {
    if (std::unique_ptr<SealedSocket> socket = try_to_connect(own.trainer_of)) return socket;
    stop_if_asked(session, "before the server was there");
    require(own.hang_timeout_seconds <= 0 || watch.seconds() < own.hang_timeout_seconds, Failure::out_of_step,
            "no server has answered for {:g} seconds (--hang-timeout). Start it with --sync ps or ps-async, --trainers "
            "and --output '{}'.",
            own.hang_timeout_seconds, own.trainer_of.string());
    std::this_thread::sleep_for(200ms);
  }
}

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
  trainers->set_while_waiting([&session](int count) {
    rank_status::mark_progress();
    if (count == 0) stop_if_asked(session, "while it waited for trainers; steps since the last checkpoint are lost");
  });
  return trainers;
}

TrainingOutcome train_with_trainers(OpenedTraining& training) {
  RemoteTrainers& trainers = *training.trainers;
  trainers.set_offer(offer_to_trainers(training));
  const PublishedContact contact(training.run.output, {addresses_of_this_node(), trainers.port(), trainers.token()});
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
                                               [&session] { stop_if_asked(session, "between two micro-batches"); });
  nlohmann::json offer = try_parse_json(server->offer());
  try {
    ValidSettings settings = accept_offer(offer, session, own);
    return {std::move(server), std::move(offer), std::move(settings)};
  } catch (const Error& error) {
    server->say_goodbye(error.what());
    throw;
  }
}

Ending train_for_server(const Session& session, JoinedServer& joined) {
  try {
    train_until_end(session, joined);
    return {};
  } catch (const TrainingEnded& end) {
    if (end.code() == 0) return {};
    return {end.code(), fmt::format("the server has ended this trainer: {}", end.what())};
  } catch (const Error& error) {
    joined.server->say_goodbye(error.what());
    return {error.exit_code(), error.what()};
  }
}

}  // namespace lockstep

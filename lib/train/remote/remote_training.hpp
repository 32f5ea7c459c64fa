// A training whose trainers are programs of their own (step/remote_rounds.hpp), at both ends.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>

#include "comm/remote_server.hpp"
#include "runtime/stop/ending.hpp"
#include "train/opening/opened_training.hpp"
#include "train/training_outcome.hpp"

namespace lockstep {

// For a program that is the server. Throws Error(usage) unless it has one rank, and computes on a CPU.
std::unique_ptr<RemoteTrainers> make_remote_trainers(const Session& session, const RunOptions& run);

// Trains, and ends all trainers with the outcome.
TrainingOutcome train_with_trainers(OpenedTraining& training);

// For a program that is a trainer, in two steps, because only the server's recipe says how to open the device.
struct JoinedServer {
  std::unique_ptr<RemoteServer> server;
  nlohmann::json offer;
  ValidSettings settings;
};
// Waits until the server in `own.trainer_of` is there. Throws Error(out_of_step) if it is not for --hang-timeout,
// Error(stopped_early) if this process is asked to stop meanwhile, and as accept_offer().
JoinedServer join_server(const Session& session, const RunOptions& own);
// Computes what the server hands out, until the training ends or this process is asked to stop.
Ending train_for_server(const Session& session, JoinedServer& joined);
// What join_server() may throw, too: the training has ended meanwhile.
Ending ending_of(const TrainingEnded& end);

}  // namespace lockstep

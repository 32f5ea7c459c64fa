// The queued work of all streams, and the order in which it runs. Work forms a graph: it runs after the work before it
// in its stream and after the events that the stream waits for. A host thread that calls CUDA runs it, within the call.
// Work of NCCL also waits for other processes.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <random>
#include <vector>

#include "support/simulated_gpu/settings.hpp"

namespace lockstep::simulated {

// Does the work; an error is the device's from then on.
using Run = std::function<cudaError_t()>;

enum class Lane : std::uint8_t { main, side };  // of a device's first stream; of its others

enum class Readiness : std::uint8_t { now, later, never };

// What work waits for in other processes.
class Condition {
 public:
  Condition() = default;
  Condition(const Condition&) = delete;
  Condition& operator=(const Condition&) = delete;
  virtual ~Condition() = default;

  // Called once the work before it is done.
  virtual Readiness ask() = 0;
  // The host waits for work that can never run: says why and ends the program.
  [[noreturn]] virtual void report_hang() = 0;
};
using ConditionHandle = std::shared_ptr<Condition>;

struct Work {
  std::vector<std::shared_ptr<Work>> after;
  Run run;
  int device;
  Lane lane;
  ConditionHandle condition;  // null: none
  bool is_done = false;
};
using WorkHandle = std::shared_ptr<Work>;

class Schedule {
 public:
  // `run_guarded` runs the work in the state of the device that it uses.
  using RunGuarded = std::function<void(Work& work)>;
  Schedule(const Settings& settings, RunGuarded run_guarded);

  // `after` may hold null: no work.
  WorkHandle add(std::vector<WorkHandle> after, Run run, int device, Lane lane, ConditionHandle condition = nullptr);
  // Runs `work` and what it comes after. Null: nothing.
  void finish(const WorkHandle& work);
  // Runs all work with one of these conditions, and what it comes after.
  void finish_all(std::initializer_list<const Condition*> conditions);
  // Runs one piece of work that `work` needs, or `work`: a host that polls sees progress.
  void progress(const WorkHandle& work);
  // Runs what the order wants to run now. Called at the end of each call of CUDA.
  void advance();

 private:
  static bool is_ready(const Work& work);
  static bool may_run(const Work& work);
  static void wait_for_others(const Work& work);
  static WorkHandle open_before(const Work& work);  // null: none
  void run(const WorkHandle& work);
  void advance_side_streams();  // in the order early
  template <typename Wanted>
  void run_while_any(const Wanted& wanted);  // work that is wanted and may run
  bool run_any();                            // some work that may run; false if there is none
  void finish_in_any_order(const Work& work);

  Order order_;
  RunGuarded run_guarded_;
  std::vector<WorkHandle> pending_;  // in the order of add()
  std::mt19937_64 random_;
};

}  // namespace lockstep::simulated

#include "support/simulated_gpu/gpu.hpp"

#include <sys/ucontext.h>

#include <algorithm>
#include <csetjmp>
#include <csignal>
#include <cstdlib>
#include <utility>

#include "support/noted_line.hpp"

namespace lockstep::simulated {
namespace {

thread_local int device_of_thread = 0;
thread_local cudaError_t error_of_thread = cudaSuccess;

// Where a thread continues after its work touched forbidden memory.
thread_local sigjmp_buf* way_out = nullptr;

void leave_work(int signal, siginfo_t* info, void* context) {
  constexpr greg_t write_bit = 2;  // of the page fault's error code
  const bool is_write = (static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & write_bit) != 0;
  if (way_out != nullptr && gpu().settings().notes_traffic && gpu().memory().admit(info->si_addr, is_write)) return;
  if (way_out != nullptr && gpu().memory().owns(info->si_addr)) siglongjmp(*way_out, 1);
  std::signal(signal, SIG_DFL);  // the access is repeated, and ends the program
}

// While it exists, work that touches a device's memory where it may not leaves by way_out.
class CatchBadAccess {
 public:
  explicit CatchBadAccess(sigjmp_buf& out) {
    way_out = &out;
    struct sigaction action {};
    action.sa_sigaction = leave_work;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGSEGV, &action, &before_);
  }
  CatchBadAccess(const CatchBadAccess&) = delete;
  CatchBadAccess& operator=(const CatchBadAccess&) = delete;
  ~CatchBadAccess() {
    sigaction(SIGSEGV, &before_, nullptr);
    way_out = nullptr;
  }

 private:
  struct sigaction before_ {};
};

// Loops over numbers only, so nothing needs to be unwound.
cudaError_t run_or_leave(const Run& run) {
  sigjmp_buf out;
  const CatchBadAccess guard(out);
  if (sigsetjmp(out, 0) != 0) return cudaErrorIllegalAddress;
  return run();
}

}  // namespace

bool Graph::all_lead_to(const Ends& ends) const {
  std::set<std::size_t> leading = ends;
  for (std::size_t index = works.size(); index-- > 0;) {  // work comes after lower indices only
    if (!leading.contains(index)) return false;
    leading.insert(works[index].after.begin(), works[index].after.end());
  }
  return true;
}

Gpu::Gpu(const Settings& settings)
    : settings_(settings),
      schedule_(settings, [this](Work& work) { run_guarded(work); }),
      lost_(static_cast<std::size_t>(settings.devices), cudaSuccess) {}

void Gpu::run_guarded(Work& work) {
  cudaError_t& lost = lost_[static_cast<std::size_t>(work.device)];
  if (lost != cudaSuccess || !work.run) return;
  if (!settings_.notes_traffic) memory_.open(work.device);
  lost = run_or_leave(work.run);
  if (!settings_.notes_traffic) memory_.close(work.device);
  spend(0.002);
}

Run Gpu::with_traffic(std::int64_t number, Run run) {
  return [this, number, run = std::move(run)] {
    const cudaError_t code = run();
    const Traffic traffic = memory_.take_traffic();
    note_line(fmt::format("traffic {} {} {}", number, traffic.read, traffic.written));
    return code;
  };
}

Stream* Gpu::find(cudaStream_t stream) const {
  auto* const found = reinterpret_cast<Stream*>(stream);
  return streams_.contains(found) ? found : nullptr;
}

Event* Gpu::find(cudaEvent_t event) const {
  auto* const found = reinterpret_cast<Event*>(event);
  return events_.contains(found) ? found : nullptr;
}

cudaError_t Gpu::queue(cudaStream_t handle, Run run, const ConditionHandle& condition) {
  Stream* const stream = find(handle);
  if (stream == nullptr || stream->device != current_device()) return cudaErrorInvalidResourceHandle;
  note_line(fmt::format("work {}", ++works_));
  if (settings_.notes_traffic && run) run = with_traffic(works_, std::move(run));
  if (stream->capture == nullptr) {
    stream->tail = schedule_.add({stream->tail}, std::move(run), stream->device, stream->lane, condition);
    return cudaSuccess;
  }
  if (!stream->capture->is_valid) return cudaErrorStreamCaptureInvalidated;
  std::vector<CapturedWork>& works = stream->capture->graph.works;
  works.push_back({{stream->ends.begin(), stream->ends.end()}, std::move(run), stream->lane, condition});
  stream->ends = {works.size() - 1};
  return cudaSuccess;
}

Gpu::~Gpu() {
  const auto delete_all = [](const auto& objects) {
    for (auto* const object : objects) delete object;
  };
  delete_all(ready_graphs_);
  delete_all(graphs_);
  delete_all(events_);
  delete_all(streams_);
}

bool Gpu::may_wait() {
  bool may = true;
  for (Stream* const stream : streams_) {
    if (stream->capture == nullptr || stream->capture->thread != std::this_thread::get_id()) continue;
    stream->capture->is_valid = false;
    may = false;
  }
  return may;
}

namespace {

std::unique_ptr<Gpu>& place() {
  static auto* const made = new std::unique_ptr<Gpu>(std::make_unique<Gpu>(settings_of_environment()));
  return *made;
}

}  // namespace

Gpu& gpu() { return *place(); }

std::recursive_mutex& mutex() {
  static auto* const made = new std::recursive_mutex;
  return *made;
}

void reset(const Settings& settings) {
  const std::lock_guard lock(mutex());
  place() = std::make_unique<Gpu>(settings);
  device_of_thread = 0;
  error_of_thread = cudaSuccess;
}

int current_device() { return device_of_thread; }
void set_current_device(int device) { device_of_thread = device; }
cudaError_t& last_error() { return error_of_thread; }

}  // namespace lockstep::simulated

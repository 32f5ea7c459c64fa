// Of a build without CUDA, whose headers NVTX is part of.
#include "device/profiler_range.hpp"

namespace lockstep {

ProfilerRange::ProfilerRange(std::string_view /*name*/) noexcept {}
ProfilerRange::~ProfilerRange() = default;

void ProfilerPhases::enter(std::string_view /*name*/) noexcept {}
void ProfilerPhases::leave() noexcept {}

}  // namespace lockstep

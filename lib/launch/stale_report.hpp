// The report of an earlier attempt, for a command line that is refused before it takes its output folder.
#pragma once

#include <CLI/App.hpp>

namespace lockstep {

// If --output names a folder with the failure.json of an earlier attempt, and no job holds the folder: takes it and
// removes that report, so that failure_report::write() replaces it. Readers would take it for this attempt's.
// Afterwards failure_report::set_folder({}) gives the folder back. If the folder cannot be written, nothing changes.
void take_stale_report(const CLI::App& app);

}  // namespace lockstep

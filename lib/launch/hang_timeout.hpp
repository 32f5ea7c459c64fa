// The option --hang-timeout of programs whose ranks work together and do not train. Trainings declare theirs in the
// table of fields (recipe/fields.cpp).
#pragma once

#include <CLI/CLI.hpp>

#include "launch/number_option.hpp"
#include "runtime/watch/watcher.hpp"

namespace lockstep {

struct HangTimeout {
  double seconds = 300;

  void declare(CLI::App& app) {
    add_number(app, "--hang-timeout", seconds, {0, 1e9},
               "A rank that gets no further for so long is named and ends the job; 0: never")
        ->type_name("SECONDS");
  }
  // Phases such as listing a million files mark no progress, so processor time counts as progress, too.
  WatchOptions watch_options() const { return {seconds, ProgressBy::marks_and_time}; }
};

}  // namespace lockstep

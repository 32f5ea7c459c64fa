// The option --hang-timeout of programs that run in several ranks but do not train. Trainings declare theirs in the
// table of fields (recipe/fields.cpp).
#pragma once

#include <CLI/App.hpp>

#include "launch/number_option.hpp"
#include "recipe/field.hpp"
#include "runtime/watch/watcher.hpp"

namespace lockstep {

struct HangTimeout {
  double seconds = 300;

  void declare(CLI::App& app) {
    add_number(app, "--hang-timeout", seconds, {0, 1e9},
               "End the job if a rank makes no progress for this long, and name it; 0: never")
        ->type_name("SECONDS")
        ->group(heading_of(FieldGroup::monitoring));
  }
  // Some phases, such as listing a million files, report no progress. So CPU time also counts as progress.
  WatchOptions watch_options() const { return {seconds, ProgressBy::marks_and_time}; }
};

}  // namespace lockstep

// A study as an HTML page that stands alone: what it finds, throughput and efficiency with their intervals, what a step
// goes to at each rank count, machine and versions.
#pragma once

#include <string>

#include "report/page/plot.hpp"
#include "scaling/study.hpp"

namespace lockstep {

// Samples a second over ranks, with what no loss would give.
Plot throughput_plot(const Study& study);
// Percent of a rank's throughput at the smallest rank count.
Plot efficiency_plot(const Study& study);

// Samples a second over threads or bytes of a bucket, which are numbers.
Plot sweep_plot(const Study& study, Sweep sweep);

// Milliseconds of a step as bars, a part on another, for each rank count; a table without bars where parts are not
// told.
std::string html_step_bars(const Study& study, Scaling scaling);

// The whole page.
std::string study_page(const Study& study);

}  // namespace lockstep

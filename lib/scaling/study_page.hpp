// A study as a self-contained HTML page: its findings, throughput and efficiency with intervals, the parts of a step at
// each rank count, machine and versions.
#pragma once

#include <string>

#include "report/page/plot.hpp"
#include "scaling/study.hpp"

namespace lockstep {

// Samples per second over ranks, with the ideal line.
Plot throughput_plot(const Study& study);
// Throughput per rank in percent of that at the smallest rank count.
Plot efficiency_plot(const Study& study);

// Samples per second over threads or bucket sizes.
Plot sweep_plot(const Study& study, Sweep sweep);

// Stacked bars of a step's parts in milliseconds, one bar for each rank count. A table without bars if the parts are
// unknown.
std::string html_step_bars(const Study& study, Scaling scaling);

// The whole page.
std::string study_page(const Study& study);

}  // namespace lockstep

#include "preflight/judgement.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "base/error.hpp"

namespace lockstep {
namespace {

using Nodes = std::vector<const NodeFacts*>;

std::vector<std::string> hosts_of(const Nodes& nodes) {
  std::vector<std::string> hosts;
  for (const NodeFacts* node : nodes) hosts.push_back(node->host);
  return hosts;
}

// "n1, n2 and 3 more"
std::string describe(const std::vector<std::string>& hosts) {
  constexpr std::size_t most = 4;
  const std::string first = fmt::format(
      "{}", fmt::join(hosts.begin(), hosts.begin() + static_cast<std::ptrdiff_t>(std::min(hosts.size(), most)), ", "));
  return hosts.size() <= most ? first : fmt::format("{} and {} more", first, hosts.size() - most);
}

// The median; of an even number of values, the larger of the middle two.
double middle(std::vector<double> values) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, at);
  return *at;
}

std::string gigabytes(double bytes) { return fmt::format("{:.3g} GB", 1e-9 * bytes); }
std::string format_rate(double rate) {
  return rate >= 999.5e6 ? fmt::format("{:.3g} GB/s", 1e-9 * rate) : fmt::format("{:.3g} MB/s", 1e-6 * rate);
}

class Judge {
 public:
  Judge(const ClusterFacts& facts, const Floors& floors) : facts_(facts), floors_(floors) {}

  std::vector<ClusterFinding> findings() {
    sums();
    folders();
    versions();
    clocks();
    computing();
    links();
    devices();
    std::ranges::stable_sort(found_, std::ranges::greater(), &ClusterFinding::severity);
    return std::move(found_);
  }

 private:
  const NodeFacts& node_of(const RankFacts& rank) const { return facts_.nodes[static_cast<std::size_t>(rank.node)]; }

  // If only some nodes fail a check, they are bad. If all nodes fail it, something else is.
  void blame(const Nodes& bad, const std::string& sentence) {
    if (bad.empty()) return;
    const bool all = bad.size() == facts_.nodes.size();
    found_.push_back(
        {all ? Severity::bad_cluster : Severity::bad_node, all ? std::vector<std::string>() : hosts_of(bad), sentence});
  }
  // If nodes differ and no reference exists, the minority is wrong. Of two halves, neither can be blamed.
  void blame_few(const Nodes& few, const std::string& sentence) {
    if (few.empty()) return;
    const bool is_few = 2 * few.size() < facts_.nodes.size();
    found_.push_back({is_few ? Severity::bad_node : Severity::bad_cluster,
                      is_few ? hosts_of(few) : std::vector<std::string>(), sentence});
  }

  template <typename Is>
  Nodes nodes_that(Is is) const {
    Nodes nodes;
    for (const NodeFacts& node : facts_.nodes) {
      if (is(node)) nodes.push_back(&node);
    }
    return nodes;
  }

  void sums() {
    std::set<int> given;    // nodes whose contribution was wrong everywhere
    std::set<int> arrived;  // nodes that received wrong values while others did not
    const auto wrong = [](const RankFacts& rank) { return rank.wrong_contributor.has_value(); };
    const auto count = static_cast<std::size_t>(std::ranges::count_if(facts_.ranks, wrong));
    if (count == 0) return;
    for (const RankFacts& rank : facts_.ranks) {
      if (!rank.wrong_contributor) continue;
      arrived.insert(rank.node);
      given.insert(facts_.ranks[static_cast<std::size_t>(*rank.wrong_contributor)].node);
    }
    const std::set<int>& bad = count == facts_.ranks.size() ? given : arrived;
    const Nodes nodes =
        nodes_that([&](const NodeFacts& node) { return bad.contains(static_cast<int>(&node - facts_.nodes.data())); });
    blame(nodes, fmt::format("all-reduces return wrong sums {} {}, so a training would use damaged gradients. Check "
                             "the memory and network there.",
                             count == facts_.ranks.size() ? "for the values of" : "on", describe(hosts_of(nodes))));
  }

  void folders() {
    const Nodes shut = nodes_that([](const NodeFacts& node) { return !node.folder.fault.empty(); });
    if (!shut.empty()) {
      blame(shut, fmt::format("{} '{}': {}",
                              shut.size() == facts_.nodes.size()
                                  ? "no node can write to the output folder"
                                  : describe(hosts_of(shut)) + " cannot write to the output folder",
                              facts_.folder, shut.front()->folder.fault));
    }
    const double needed = 2 * facts_.checkpoint_bytes;
    const auto is_open = [](const NodeFacts& node) { return node.folder.fault.empty(); };
    const Nodes full =
        nodes_that([&](const NodeFacts& node) { return is_open(node) && node.folder.free_bytes < needed; });
    if (!full.empty()) {
      blame(full, fmt::format("'{}' has only {} free on {}, but two checkpoints of {} need {}. Free some space, or "
                              "choose another folder with --output.",
                              facts_.folder, gigabytes(full.front()->folder.free_bytes), describe(hosts_of(full)),
                              facts_.model, gigabytes(needed)));
    }
    const auto slower = [&](double FolderFacts::*rate, double floor, const char* does) {
      const Nodes slow = nodes_that([&](const NodeFacts& node) { return is_open(node) && node.folder.*rate < floor; });
      if (slow.empty()) return;
      blame(slow, fmt::format("{} {} '{}' at {}, below the floor of {}. Check the load of the file system.",
                              describe(hosts_of(slow)), does, facts_.folder, format_rate(slow.front()->folder.*rate),
                              format_rate(floor)));
    };
    slower(&FolderFacts::write_bytes_per_second, floors_.write_bytes_per_second, "writes");
    slower(&FolderFacts::read_bytes_per_second, floors_.read_bytes_per_second, "reads");
  }

  void versions() {
    std::set<std::string> names;
    for (const NodeFacts& node : facts_.nodes) {
      for (const auto& [name, version] : node.versions) names.insert(name);
    }
    for (const std::string& name : names) {
      std::map<std::string, Nodes> having;
      for (const NodeFacts& node : facts_.nodes) {
        const auto version = node.versions.find(name);
        having[version == node.versions.end() ? "none" : version->second].push_back(&node);
      }
      if (having.size() < 2) continue;
      const auto most = std::ranges::max_element(having, {}, [](const auto& one) { return one.second.size(); });
      Nodes others;
      std::vector<std::string> words;
      for (const auto& [version, nodes] : having) {
        words.push_back(fmt::format("{} on {}", version, describe(hosts_of(nodes))));
        if (version != most->first) others.insert(others.end(), nodes.begin(), nodes.end());
      }
      blame_few(others, fmt::format("nodes differ in {}: {}. Ranks may compute different results, or fail to "
                                    "communicate. Load the same modules on all nodes.",
                                    name, fmt::join(words, ", ")));
    }
  }

  void clocks() {
    std::vector<double> ahead;
    for (const NodeFacts& node : facts_.nodes) ahead.push_back(node.clock_ahead_seconds);
    const double center = middle(ahead);
    const auto off_by = [&](const NodeFacts& node) {
      return std::max(0.0, std::abs(node.clock_ahead_seconds - center) - node.clock_error_seconds);
    };
    const Nodes off = nodes_that([&](const NodeFacts& node) { return off_by(node) > floors_.clock_seconds; });
    if (off.empty()) return;
    blame_few(off, fmt::format("the clock of {} differs by {:.3g} s from the other clocks, so times in logs and of "
                               "files are wrong. Check its time service.",
                               describe(hosts_of(off)), off_by(*off.front())));
  }

  void computing() {
    std::vector<double> rates;
    for (const RankFacts& rank : facts_.ranks) rates.push_back(rank.samples_per_second);
    const double center = middle(rates);
    std::map<const NodeFacts*, const RankFacts*> slowest;
    for (const RankFacts& rank : facts_.ranks) {
      const bool is_slow = rank.samples_per_second < floors_.compute_share * center;
      const RankFacts*& known = slowest[&node_of(rank)];
      if (is_slow && (known == nullptr || rank.samples_per_second < known->samples_per_second)) known = &rank;
    }
    for (const NodeFacts& node : facts_.nodes) {
      const RankFacts* const rank = slowest[&node];
      if (rank == nullptr) continue;
      blame({&node}, fmt::format("rank {} on {} computes {:.0f} samples/s, {:.0f} % of the median {:.0f}. All other "
                                 "ranks would wait for it. Check for other programs, and for throttled cores or GPUs.",
                                 rank->rank, node.host, rank->samples_per_second,
                                 100 * rank->samples_per_second / center, center));
    }
    const Nodes below = nodes_that([&](const NodeFacts& node) {
      return std::ranges::any_of(node.ranks, [&](int rank) {
        return facts_.ranks[static_cast<std::size_t>(rank)].samples_per_second < floors_.samples_per_second;
      });
    });
    if (below.empty()) return;
    blame(below, fmt::format("ranks on {} compute less than the floor of {:.0f} samples/s. The median is {:.0f}.",
                             describe(hosts_of(below)), floors_.samples_per_second, center));
  }

  // A node is slow only if all of its links are slow, because a single slow link has two ends.
  void links() {
    std::vector<double> best(facts_.nodes.size(), 0);
    double fastest = 0;
    for (std::size_t node = 0; node < facts_.nodes.size(); ++node) {
      if (!facts_.nodes[node].link) continue;
      const LinkFacts& link = *facts_.nodes[node].link;
      for (const std::size_t end : {node, static_cast<std::size_t>(link.other)}) {
        best[end] = std::max(best[end], link.bytes_per_second);
      }
      fastest = std::max(fastest, link.bytes_per_second);
    }
    const Nodes slow = nodes_that([&](const NodeFacts& node) {
      return best[static_cast<std::size_t>(&node - facts_.nodes.data())] < floors_.link_share * fastest;
    });
    if (!slow.empty()) {
      const double rate = best[static_cast<std::size_t>(slow.front() - facts_.nodes.data())];
      blame(slow, fmt::format(
                      "{} sends and receives only {}, but the fastest link reaches {}. Check network cards and cables.",
                      describe(hosts_of(slow)), format_rate(rate), format_rate(fastest)));
    }
    if (facts_.sums.empty()) return;
    const double bus = bus_bytes_per_second(facts_.sums.back(), facts_.ranks.size());
    if (bus >= floors_.bus_bytes_per_second) return;
    found_.push_back({Severity::bad_cluster,
                      {},
                      fmt::format("all-reduces of {} over {} ranks reach a bus bandwidth of {}, below the floor of {}. "
                                  "Check that MPI or NCCL uses the fast network (LOCKSTEP_INTERFACE).",
                                  gigabytes(static_cast<double>(facts_.sums.back().bytes)), facts_.ranks.size(),
                                  format_rate(bus), format_rate(floors_.bus_bytes_per_second))});
  }

  void devices() {
    std::map<std::string, std::vector<std::string>> hosts_with;
    for (const RankFacts& rank : facts_.ranks) {
      std::vector<std::string>& hosts = hosts_with[rank.device];
      if (std::ranges::find(hosts, node_of(rank).host) == hosts.end()) hosts.push_back(node_of(rank).host);
    }
    if (hosts_with.size() > 1) {
      std::vector<std::string> words;
      for (const auto& [device, hosts] : hosts_with) words.push_back(fmt::format("{} on {}", device, describe(hosts)));
      found_.push_back({Severity::note,
                        {},
                        fmt::format("ranks use different devices: {}. The slowest device limits the speed.",
                                    fmt::join(words, "; "))});
    }
    std::map<std::pair<int, std::string>, std::vector<int>> users;
    for (const RankFacts& rank : facts_.ranks) {
      if (!rank.gpu.empty()) users[{rank.node, rank.gpu}].push_back(rank.rank);
    }
    for (const auto& [place, ranks] : users) {
      if (ranks.size() < 2) continue;
      found_.push_back(
          {Severity::note,
           {},
           fmt::format(
               "ranks {} on {} share the GPU at {}, so they are slower and cannot use NCCL. Start one rank per GPU.",
               fmt::join(ranks, ", "), facts_.nodes[static_cast<std::size_t>(place.first)].host, place.second)});
    }
  }

  const ClusterFacts& facts_;
  const Floors& floors_;
  std::vector<ClusterFinding> found_;
};

}  // namespace

std::vector<ClusterFinding> judge(const ClusterFacts& facts, const Floors& floors) {
  return Judge(facts, floors).findings();
}

ClusterDiagnosis diagnosis_of(const std::vector<ClusterFinding>& findings, const ClusterFacts& facts) {
  ClusterDiagnosis verdict;
  for (const ClusterFinding& finding : findings) {
    for (const std::string& host : finding.hosts) {
      if (std::ranges::find(verdict.hosts, host) == verdict.hosts.end()) verdict.hosts.push_back(host);
    }
  }
  const auto wrong =
      std::ranges::count_if(findings, [](const ClusterFinding& one) { return one.severity != Severity::note; });
  const std::string cluster =
      fmt::format("{} {} with {} {}", facts.nodes.size(), facts.nodes.size() == 1 ? "node" : "nodes",
                  facts.ranks.size(), facts.ranks.size() == 1 ? "rank" : "ranks");
  if (wrong == 0) {
    verdict.sentence = cluster + ": no problem found.";
    return verdict;
  }
  verdict.code = static_cast<int>(verdict.hosts.empty() ? Failure::other : Failure::bad_node);
  const std::string more = wrong == 1 ? "" : fmt::format(" More findings above: {}.", wrong - 1);
  verdict.sentence = (verdict.hosts.empty() ? "" : fmt::format("bad nodes: {}. ", describe(verdict.hosts))) +
                     findings.front().sentence + more;
  return verdict;
}

}  // namespace lockstep

#include "preflight/facts.hpp"

#include "base/text/json_text.hpp"

namespace lockstep {

double bus_bytes_per_second(const AllReduceFacts& sum, std::size_t ranks) {
  const auto n = static_cast<double>(ranks);
  return static_cast<double>(sum.bytes) / sum.median() * 2 * (n - 1) / n;
}

nlohmann::json json_of(const RankFacts& facts) {
  return {{"rank", facts.rank},
          {"node", facts.node},
          {"device", facts.device},
          {"gpu", facts.gpu},
          {"cores", facts.cores},
          {"samples_per_second", facts.samples_per_second},
          {"wrong_part", facts.wrong_contributor ? nlohmann::json(*facts.wrong_contributor) : nlohmann::json()}};
}

nlohmann::json json_of(const NodeFacts& facts) {
  nlohmann::json json = {{"host", facts.host},
                         {"ranks", facts.ranks},
                         {"versions", facts.versions},
                         {"clock_ahead_seconds", facts.clock_ahead_seconds},
                         {"clock_error_seconds", facts.clock_error_seconds},
                         {"folder",
                          {{"fault", facts.folder.fault},
                           {"free_bytes", facts.folder.free_bytes},
                           {"write_bytes_per_second", facts.folder.write_bytes_per_second},
                           {"read_bytes_per_second", facts.folder.read_bytes_per_second}}},
                         {"link", nullptr}};
  if (facts.link) {
    json["link"] = {{"other", facts.link->other},
                    {"latency_seconds", facts.link->latency_seconds},
                    {"bytes_per_second", facts.link->bytes_per_second}};
  }
  return json;
}

nlohmann::json json_of(const ClusterFacts& facts) {
  nlohmann::json ranks = nlohmann::json::array();
  for (const RankFacts& rank : facts.ranks) ranks.push_back(json_of(rank));
  nlohmann::json nodes = nlohmann::json::array();
  for (const NodeFacts& node : facts.nodes) nodes.push_back(json_of(node));
  nlohmann::json sums = nlohmann::json::array();
  for (const AllReduceFacts& sum : facts.sums) {
    sums.push_back({{"bytes", sum.bytes},
                    {"seconds", sum.median()},
                    {"seconds_p99", sum.percentile_99()},
                    {"bus_bytes_per_second", bus_bytes_per_second(sum, facts.ranks.size())}});
  }
  return {{"ranks", ranks},
          {"nodes", nodes},
          {"sums", sums},
          {"reducer", facts.reducer},
          {"folder", facts.folder},
          {"model", facts.model},
          {"checkpoint_bytes", facts.checkpoint_bytes}};
}

RankFacts rank_facts(std::string_view text) {
  const nlohmann::json json = parse_json(text);
  RankFacts facts;
  json.at("rank").get_to(facts.rank);
  json.at("node").get_to(facts.node);
  json.at("device").get_to(facts.device);
  json.at("gpu").get_to(facts.gpu);
  json.at("cores").get_to(facts.cores);
  json.at("samples_per_second").get_to(facts.samples_per_second);
  if (!json.at("wrong_part").is_null()) facts.wrong_contributor = json.at("wrong_part").get<int>();
  return facts;
}

NodeFacts node_facts(std::string_view text) {
  const nlohmann::json json = parse_json(text);
  NodeFacts facts;
  json.at("host").get_to(facts.host);
  json.at("ranks").get_to(facts.ranks);
  json.at("versions").get_to(facts.versions);
  json.at("clock_ahead_seconds").get_to(facts.clock_ahead_seconds);
  json.at("clock_error_seconds").get_to(facts.clock_error_seconds);
  const nlohmann::json& folder = json.at("folder");
  folder.at("fault").get_to(facts.folder.fault);
  folder.at("free_bytes").get_to(facts.folder.free_bytes);
  folder.at("write_bytes_per_second").get_to(facts.folder.write_bytes_per_second);
  folder.at("read_bytes_per_second").get_to(facts.folder.read_bytes_per_second);
  if (const nlohmann::json& link = json.at("link"); !link.is_null()) {
    facts.link = LinkFacts{link.at("other").get<int>(), link.at("latency_seconds").get<double>(),
                           link.at("bytes_per_second").get<double>()};
  }
  return facts;
}

}  // namespace lockstep

#include "slurm/roles/cluster.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string_view>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/text/json_text.hpp"
#include "base/text/printable.hpp"
#include "slurm/roles/role_json.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::json;

constexpr int cluster_nesting = 6;  // an object: the list of instances, an instance, its ports, a list, a port
constexpr int largest_port = 65535;

bool is_host(std::string_view name) {
  constexpr std::string_view characters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
  return !name.empty() && name.size() <= 255 && name.find_first_not_of(characters) == std::string_view::npos;
}

bool is_address(const std::string& text) {
  std::array<char, sizeof(in6_addr)> address{};
  return ::inet_pton(AF_INET, text.c_str(), address.data()) == 1 ||
         ::inet_pton(AF_INET6, text.c_str(), address.data()) == 1;
}

Json nodes_of(const Cluster& cluster) {
  Json nodes = Json::array();
  for (const ClusterInstance& one : cluster.instances) {
    const auto known = std::ranges::find_if(nodes, [&](const Json& node) { return node["host"] == one.host; });
    if (known == nodes.end()) {
      nodes.push_back({{"host", one.host}, {"address", one.address}, {"slots", 1}});
    } else {
      (*known)["slots"] = (*known)["slots"].get<std::int64_t>() + 1;
    }
  }
  return nodes;
}

std::int64_t rank_of(const std::vector<Role>& roles, std::size_t place) {
  const std::vector<ClusterInstance> instances = instances_of(roles);
  std::int64_t rank = 0;
  for (const std::size_t other : world_of(roles, place)) {
    if (other == place) break;
    rank += ranks_per_instance(roles[instances[other].role]);
  }
  return rank;
}

Json cluster_json(const Cluster& cluster) {
  Json instances = Json::array();
  for (std::size_t place = 0; place < cluster.instances.size(); ++place) {
    const ClusterInstance& one = cluster.instances[place];
    instances.push_back({{"role", cluster.roles.at(one.role).name},
                         {"instance", one.instance},
                         {"rank", rank_of(cluster.roles, place)},
                         {"host", one.host},
                         {"address", one.address},
                         {"ports", one.ports}});
  }
  const ClusterInstance& master = cluster.instances.at(0);
  return {{"format", 1},
          {"job",
           {{"id", cluster.job.id},
            {"name", cluster.job.name},
            {"user", cluster.job.user},
            {"partition", cluster.job.partition},
            {"folder", cluster.job.folder}}},
          {"attempt", cluster.attempt},
          {"checkpoint", cluster.checkpoint.empty() ? Json() : Json(cluster.checkpoint)},
          {"master", {{"address", master.address}, {"port", master.ports.at(master_label).at(0)}}},
          {"nodes", nodes_of(cluster)},
          {"roles", roles_json(cluster.roles)},
          {"instances", instances}};
}

// Returns a required field of an object.
const Json& field(const Json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  require(object.is_object() && found != object.end(), Failure::bad_data, "the field '{}' is missing", name);
  return *found;
}
std::string text(const Json& object, const char* name) {
  const Json& value = field(object, name);
  require(value.is_string(), Failure::bad_data, "the field '{}' is not a string", name);
  std::string read = value.get<std::string>();
  require(read.find('\0') == std::string::npos, Failure::bad_data, "the field '{}' has a zero byte", name);
  return read;
}
std::int64_t count(const Json& object, const char* name) {
  const Json& value = field(object, name);
  const bool is_count = value.is_number_unsigned() && value.get<std::uint64_t>() < std::uint64_t{1} << 62;
  require(is_count, Failure::bad_data, "the field '{}' is not a count", name);
  return value.get<std::int64_t>();
}

std::map<std::string, std::vector<int>> ports_in(const Json& object,
                                                 const std::map<std::string, std::int64_t>& reserved) {
  const Json& labels = field(object, "ports");
  std::map<std::string, std::vector<int>> ports;
  for (const auto& [label, wanted] : reserved) {
    const Json& list = field(labels, label.c_str());
    require(list.is_array() && list.size() == static_cast<std::size_t>(wanted), Failure::bad_data,
            "the ports '{}' are not a list of {} ports", label, wanted);
    for (const Json& port : list) {
      const bool is_port = port.is_number_unsigned() && port.get<std::uint64_t>() - 1 < largest_port;
      require(is_port, Failure::bad_data, "the ports '{}' are not numbers from 1 to {}", label, largest_port);
      ports[label].push_back(port.get<int>());
    }
  }
  return ports;
}

Cluster cluster_in(const Json& content) {
  require(count(content, "format") == 1, Failure::bad_data, "the field 'format' is not 1");
  Cluster cluster;
  const Json& job = field(content, "job");
  cluster.job = {count(job, "id"), text(job, "name"), text(job, "user"), text(job, "partition"), text(job, "folder")};
  cluster.attempt = count(content, "attempt");
  if (!field(content, "checkpoint").is_null()) cluster.checkpoint = text(content, "checkpoint");
  cluster.roles = roles_of(content);
  cluster.instances = instances_of(cluster.roles);
  const Json& list = field(content, "instances");
  require(list.is_array() && list.size() == cluster.instances.size(), Failure::bad_data,
          "the field 'instances' does not match 'roles'");
  for (std::size_t place = 0; place < list.size(); ++place) {
    ClusterInstance& one = cluster.instances[place];
    const bool is_it =
        text(list[place], "role") == cluster.roles[one.role].name && count(list[place], "instance") == one.instance;
    require(is_it, Failure::bad_data, "the field 'instances' is not in the order of 'roles'");
    read_location(list[place], reserved_ports(cluster.roles, one.role, one.instance), one);
  }
  return cluster;
}

}  // namespace

void read_location(const nlohmann::json& object, const std::map<std::string, std::int64_t>& reserved,
                   ClusterInstance& one) {
  one.host = text(object, "host");
  one.address = text(object, "address");
  require(is_host(one.host), Failure::bad_data, "the field 'host' is not a host name");
  require(is_address(one.address), Failure::bad_data, "the field 'address' is not an IP address");
  one.ports = ports_in(object, reserved);
}

std::map<std::string, std::int64_t> reserved_ports(const std::vector<Role>& roles, std::size_t role,
                                                   std::int64_t instance) {
  std::map<std::string, std::int64_t> ports = roles.at(role).ports;
  ports.try_emplace(ssh_label, 1);
  ports.try_emplace(http_label, 1);
  if (role == 0 && instance == roles[role].first_instance) ports.try_emplace(master_label, 1);
  return ports;
}

std::vector<ClusterInstance> instances_of(const std::vector<Role>& roles) {
  std::vector<ClusterInstance> instances;
  for (std::size_t role = 0; role < roles.size(); ++role) {
    for (std::int64_t one = 0; one < roles[role].instances; ++one) {
      const std::int64_t instance = roles[role].first_instance + one;
      instances.push_back({.role = role, .instance = instance, .host = "", .address = "", .ports = {}});
    }
  }
  return instances;
}

std::optional<std::size_t> place_of(const std::vector<Role>& roles, const std::string& role, std::int64_t instance) {
  std::size_t place = 0;
  for (const Role& one : roles) {
    if (one.name == role) {
      const std::int64_t at = instance - one.first_instance;
      const bool is_there = at >= 0 && at < one.instances;
      return is_there ? std::optional(place + static_cast<std::size_t>(at)) : std::nullopt;
    }
    place += static_cast<std::size_t>(one.instances);
  }
  return std::nullopt;
}

std::vector<std::size_t> world_of(const std::vector<Role>& roles, std::size_t place) {
  std::string world;
  std::vector<std::size_t> places;
  for (const bool collects : {false, true}) {
    if (collects && world.empty()) return {place};
    std::size_t first = 0;
    for (const Role& role : roles) {
      const auto end = first + static_cast<std::size_t>(role.instances);
      if (!collects && place >= first && place < end) world = role.world;
      for (std::size_t one = first; collects && role.world == world && one < end; ++one) places.push_back(one);
      first = end;
    }
  }
  return places;
}

std::string cluster_text(const Cluster& cluster) { return json_text(cluster_json(cluster)); }

void write_cluster(const std::filesystem::path& file, const Cluster& cluster) {
  write_file_atomically(file, json_lines(cluster_json(cluster)) + '\n');
}

Cluster parse_cluster(const std::string& text, const std::string& name) {
  try {
    return cluster_in(parse_shallow_json(text, cluster_nesting));
  } catch (const Error& error) {
    std::string_view what = error.what();
    if (what.ends_with('.')) what.remove_suffix(1);
    throw Error(Failure::bad_data,
                fmt::format("'{}' is not a valid cluster file: {}. Choose a file that run_roles wrote.",
                            printable(name), what));
  }
}

Cluster read_cluster(const std::filesystem::path& file) {
  return parse_cluster(read_file(file, max_cluster_bytes), file.string());
}

}  // namespace lockstep

#include "slurm/roles/cluster.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "base/io/file.hpp"
#include "base/text/json_text.hpp"
#include "slurm/roles/small_cluster.hpp"
#include "support/message_of.hpp"
#include "support/messages.hpp"
#include "support/mutation.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::cluster_test {

using Json = nlohmann::json;

// The refusal of cluster.json after `change`.
std::string refusal(const std::function<void(Json&)>& change) {
  Json json = Json::parse(cluster_text(small_cluster()));
  change(json);
  std::string message = message_of(Failure::bad_data, [&] { parse_cluster(json_text(json), "cluster.json"); });
  EXPECT_TRUE(message.starts_with("'cluster.json' ")) << message;
  return message;
}

TEST(ClusterTest, a_file_is_read_as_it_was_written) {
  Cluster cluster = small_cluster();
  cluster.job.name = "quotes \" and ' and $(touch x)\nand a line";
  cluster.checkpoint = "/runs/r 20/checkpoints/step-000000000312.h5";
  const TemporaryFolder folder;
  write_cluster(folder.path() / "cluster.json", cluster);
  const Cluster read = read_cluster(folder.path() / "cluster.json");
  EXPECT_EQ(read.job, cluster.job);
  EXPECT_EQ(read.attempt, 2);
  EXPECT_EQ(read.checkpoint, cluster.checkpoint);
  EXPECT_EQ(read.instances, cluster.instances);
  EXPECT_EQ(cluster_text(read), cluster_text(cluster));
  EXPECT_EQ(cluster_text(cluster).find('\n'), std::string::npos);
}

TEST(ClusterTest, readers_find_the_master_the_nodes_and_the_ranks) {
  const Json json = Json::parse(cluster_text(small_cluster()));
  EXPECT_EQ(json["master"]["address"], "10.0.0.1");
  EXPECT_EQ(json["master"]["port"], json["instances"][0]["ports"]["master"][0]);
  EXPECT_EQ(json["nodes"], Json::parse(R"([{"host": "n1", "address": "10.0.0.1", "slots": 3},
                                           {"host": "n2", "address": "10.0.0.2", "slots": 2}])"));
  EXPECT_EQ(json["instances"][1]["rank"], 0);  // by itself
  EXPECT_EQ(json["instances"][4]["role"], "worker");
  EXPECT_EQ(json["instances"][4]["rank"], 2);
  EXPECT_EQ(json["checkpoint"], Json());
}

TEST(ClusterTest, a_world_is_all_instances_of_all_roles_that_name_it) {
  std::vector<Role> roles = small_cluster().roles;
  EXPECT_EQ(world_of(roles, 1), (std::vector<std::size_t>{1}));
  EXPECT_EQ(world_of(roles, 3), (std::vector<std::size_t>{2, 3, 4}));
  roles.push_back({.name = "chief", .instances = 1, .command = {"x"}, .world = "training"});
  EXPECT_EQ(world_of(roles, 5), (std::vector<std::size_t>{2, 3, 4, 5}));
  EXPECT_EQ(place_of(roles, "worker", 2), 4U);
  EXPECT_EQ(place_of(roles, "chief", 0), 5U);
  EXPECT_FALSE(place_of(roles, "chief", 1));
  EXPECT_FALSE(place_of(roles, "worker", -1));
  EXPECT_FALSE(place_of(roles, "nobody", 0));
}

TEST(ClusterTest, an_instance_in_a_world_has_a_rank_for_each_gpu) {
  Cluster cluster = small_cluster();
  cluster.roles[1].gpus = 4;
  const Json json = Json::parse(cluster_text(cluster));
  EXPECT_EQ(json["instances"][2]["rank"], 0);
  EXPECT_EQ(json["instances"][4]["rank"], 8);
  EXPECT_EQ(json["nodes"][0]["slots"], 3) << "slots count instances";
}

TEST(ClusterTest, each_mistake_is_named) {
  expect_message(refusal([](Json& json) { json["format"] = 2; }), {"format"});
  expect_message(refusal([](Json& json) { json.erase("job"); }), {"job"});
  expect_message(refusal([](Json& json) { json["job"]["name"] = 1; }), {"name"});
  expect_message(refusal([](Json& json) { json["job"]["user"] = std::string("a\0b", 3); }), {"user"});
  expect_message(refusal([](Json& json) { json["attempt"] = -1; }), {"attempt"});
  expect_message(refusal([](Json& json) { json["roles"][0]["name"] = "a b"; }), {"a b", "64"});
  expect_message(refusal([](Json& json) { json["instances"].erase(0); }), {"instances"});
  expect_message(refusal([](Json& json) { json["instances"][0]["role"] = "worker"; }), {"instances"});
  expect_message(refusal([](Json& json) { json["instances"][0]["host"] = "n1;reboot"; }), {"host"});
  expect_message(refusal([](Json& json) { json["instances"][0]["address"] = "n1"; }), {"address"});
  expect_message(refusal([](Json& json) { json["instances"][0]["ports"].erase("rpc"); }), {"rpc"});
  expect_message(refusal([](Json& json) { json["instances"][0]["ports"]["rpc"] = Json::array({1}); }), {"rpc"});
  for (const int port : {0, 65536, -1}) {
    expect_message(refusal([&](Json& json) { json["instances"][0]["ports"]["rpc"][0] = port; }), {"rpc", "65535"});
  }
  expect_message(refusal([](Json& json) { json["job"].erase("folder"); }), {"folder"});
}

TEST(ClusterTest, no_damage_does_more_than_be_refused) {
  const std::string whole = cluster_text(small_cluster());
  for (std::uint64_t round = 0; round < mutation_rounds(2000); ++round) {
    try {
      cluster_text(parse_cluster(mutated(whole, round), "cluster.json"));
    } catch (const Error& error) {
      EXPECT_EQ(error.failure(), Failure::bad_data);
    }
  }
}

}  // namespace lockstep::cluster_test

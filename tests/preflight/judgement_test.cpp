#include "preflight/judgement.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "made_cluster.hpp"

namespace lockstep {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

ClusterDiagnosis verdict(const ClusterFacts& facts, const Floors& floors = {}) {
  return diagnosis_of(judge(facts, floors), facts);
}

void expect_one(const ClusterFacts& facts, Severity severity, const std::vector<std::string>& hosts,
                const std::string& sentence, const Floors& floors = {}) {
  const std::vector<ClusterFinding> findings = judge(facts, floors);
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].severity, severity);
  EXPECT_EQ(findings[0].hosts, hosts);
  EXPECT_EQ(findings[0].sentence, sentence);
}

TEST(Judgement, of_a_good_cluster_there_is_nothing_to_say) {
  for (const int nodes : {1, 2, 3, 7}) {
    const ClusterFacts facts = made_cluster(nodes);
    EXPECT_THAT(judge(facts, {}), IsEmpty());
    EXPECT_EQ(verdict(facts).code, 0);
  }
  EXPECT_EQ(verdict(made_cluster(7)).sentence, "7 nodes with 14 ranks: nothing is wrong.");
}

TEST(Judgement, a_slow_rank_makes_its_node_bad) {
  ClusterFacts facts = made_cluster(3);
  facts.ranks[3].samples_per_second = 410;
  expect_one(facts, Severity::bad_node, {"n2"},
             "rank 3 on n2 computes 410 samples/s, 41 % of the 1000 in the middle (all others would wait for it). Does "
             "something else run there, or are its cores or its GPU slowed down?");
  EXPECT_EQ(verdict(facts).code, 71);
  EXPECT_THAT(verdict(facts).hosts, ElementsAre("n2"));
  EXPECT_THAT(verdict(facts).sentence, testing::StartsWith("bad: n2. rank 3 on n2 computes 410 samples/s"));

  facts.ranks[3].samples_per_second = 801;
  EXPECT_THAT(judge(facts, {}), IsEmpty());
}

TEST(Judgement, of_one_node_alone_a_slow_rank_is_nobodys_fault_that_another_node_would_mend) {
  ClusterFacts facts = made_cluster(1);
  facts.ranks[0].samples_per_second = 10;
  EXPECT_EQ(judge(facts, {})[0].severity, Severity::bad_cluster);
  EXPECT_EQ(verdict(facts).code, 1);
}

TEST(Judgement, sums_that_are_wrong_everywhere_are_the_fault_of_who_gave_that_part) {
  ClusterFacts facts = made_cluster(3);
  for (RankFacts& rank : facts.ranks) rank.wrong_contributor = 4;
  expect_one(facts, Severity::bad_node, {"n3"},
             "sums over ranks are wrong in what comes from n3 (a training would learn from damaged gradients). Look at "
             "its memory and network.");
}

TEST(Judgement, sums_that_are_wrong_in_one_place_are_that_nodes_fault) {
  ClusterFacts facts = made_cluster(3);
  facts.ranks[0].wrong_contributor = 4;
  expect_one(facts, Severity::bad_node, {"n1"},
             "sums over ranks are wrong as they arrive on n1 (a training would learn from damaged gradients). Look at "
             "its memory and network.");
}

TEST(Judgement, a_node_that_cannot_write_is_bad_and_a_folder_that_none_can_write_is_not_its_fault) {
  ClusterFacts facts = made_cluster(3);
  facts.nodes[1].folder = {"cannot write 'runs': Read-only file system. Make room.", 500e9, 0, 0};
  expect_one(facts, Severity::bad_node, {"n2"},
             "the output folder cannot be written from n2 (runs): cannot write 'runs': Read-only file system. Make "
             "room.");
  for (NodeFacts& node : facts.nodes) node.folder = facts.nodes[1].folder;
  expect_one(facts, Severity::bad_cluster, {},
             "no node can write the output folder (runs): cannot write 'runs': Read-only file system. Make room.");
}

TEST(Judgement, two_checkpoints_need_room) {
  ClusterFacts facts = made_cluster(3);
  for (NodeFacts& node : facts.nodes) node.folder.free_bytes = 199e6;
  expect_one(
      facts, Severity::bad_cluster, {},
      "'runs' has 0.199 GB free on n1, n2, n3, and two checkpoints of resnet18 take 0.2 GB (a training could not "
      "keep its work). Free some, or choose another folder: --output.");
  for (NodeFacts& node : facts.nodes) node.folder.free_bytes = 200e6;
  EXPECT_THAT(judge(facts, {}), IsEmpty());
}

TEST(Judgement, fewer_nodes_of_another_version_are_bad_and_halves_are_nobodys_fault) {
  ClusterFacts facts = made_cluster(3);
  facts.nodes[2].versions["HDF5"] = "1.14.0";
  expect_one(facts, Severity::bad_node, {"n3"},
             "nodes differ in HDF5: 1.10.8 on n1, n2, 1.14.0 on n3 (ranks may compute differently, or not understand "
             "each other). Load the same modules everywhere.");
  facts = made_cluster(2);
  facts.nodes[0].versions.erase("HDF5");
  expect_one(facts, Severity::bad_cluster, {},
             "nodes differ in HDF5: 1.10.8 on n2, none on n1 (ranks may compute differently, or not understand each "
             "other). Load the same modules everywhere.");
}

TEST(Judgement, a_clock_is_wrong_by_more_than_it_is_known_to) {
  ClusterFacts facts = made_cluster(3);
  facts.nodes[2].clock_ahead_seconds = -2.5;
  facts.nodes[2].clock_error_seconds = 1.5;
  EXPECT_THAT(judge(facts, {}), IsEmpty());
  facts.nodes[2].clock_error_seconds = 0.5;
  expect_one(facts, Severity::bad_node, {"n3"},
             "the clock of n3 differs by 2 s from the others' (times in logs and of files lead astray). Is its time "
             "service running?");
  // The first node's clock is the measure of all: where it is the wrong one, the others differ from it alike.
  facts = made_cluster(3);
  facts.nodes[1].clock_ahead_seconds = facts.nodes[2].clock_ahead_seconds = 60;
  EXPECT_THAT(verdict(facts).hosts, ElementsAre("n1"));
}

TEST(Judgement, a_node_is_slow_to_send_only_where_both_its_links_are) {
  ClusterFacts facts = made_cluster(4);
  facts.nodes[1].link->bytes_per_second = 1e9;
  EXPECT_THAT(judge(facts, {}), IsEmpty());
  facts.nodes[0].link->bytes_per_second = 2e9;
  expect_one(facts, Severity::bad_node, {"n2"},
             "n2 sends and receives 2 GB/s, and the fastest link carries 10 GB/s. Look at its network cards and "
             "cables.");
}

TEST(Judgement, floors_are_of_each_node_and_of_all) {
  Floors floors;
  floors.samples_per_second = 1001;
  expect_one(made_cluster(2), Severity::bad_cluster, {},
             "ranks on n1, n2 compute less than the floor of 1001 samples/s (1000 in the middle).", floors);
  floors = {};
  floors.write_bytes_per_second = 1e9;
  expect_one(made_cluster(1), Severity::bad_cluster, {},
             "n1 writes 'runs' with 900 MB/s, less than the floor of 1 GB/s. Is the file system busy?", floors);
  floors = {};
  floors.read_bytes_per_second = 3e9;
  expect_one(made_cluster(1), Severity::bad_cluster, {},
             "n1 reads 'runs' with 2 GB/s, less than the floor of 3 GB/s. Is the file system busy?", floors);
  floors = {};
  floors.bus_bytes_per_second = 9e9;  // 46 MB in 10 ms by four ranks: 4.6 GB/s times 1.5
  expect_one(made_cluster(2), Severity::bad_cluster, {},
             "sums of 0.046 GB over 4 ranks reach a bus bandwidth of 6.9 GB/s, less than the floor of 9 GB/s. Is "
             "the network that MPI or NCCL chose the fast one (LOCKSTEP_INTERFACE)?",
             floors);
}

TEST(Judgement, what_a_job_can_live_with_is_a_note) {
  ClusterFacts facts = made_cluster(2);
  facts.ranks[0].gpu = facts.ranks[1].gpu = facts.ranks[2].gpu = "00000000:1B:00.0";
  expect_one(
      facts, Severity::note, {},
      "ranks 0, 1 on n1 share the GPU at 00000000:1B:00.0 (each waits for the other, and sums cannot go by NCCL). "
      "Start one rank for each GPU.");
  EXPECT_EQ(verdict(facts).code, 0);
  facts = made_cluster(2);
  facts.ranks[3].device = "cpu: another, 4 threads";
  expect_one(facts, Severity::note, {},
             "ranks compute with different devices: cpu: a processor, 8 threads on n1, n2; cpu: another, 4 threads on "
             "n2 (the slowest sets the pace).");
}

TEST(Judgement, the_worst_comes_first_and_every_bad_node_is_named_once) {
  ClusterFacts facts = made_cluster(6);
  facts.ranks[0].device = "cpu: another, 4 threads";
  facts.ranks[4].samples_per_second = 1;
  facts.ranks[5].samples_per_second = 2;
  facts.nodes[2].folder.fault = "gone";
  facts.nodes[4].versions["HDF5"] = "2";
  const std::vector<ClusterFinding> findings = judge(facts, {});
  ASSERT_THAT(findings, SizeIs(4));
  EXPECT_EQ(findings[3].severity, Severity::note);
  const ClusterDiagnosis all = diagnosis_of(findings, facts);
  EXPECT_THAT(all.hosts, ElementsAre("n3", "n5"));
  EXPECT_THAT(all.sentence, HasSubstr("bad: n3, n5. the output folder cannot be written from n3"));
  EXPECT_THAT(all.sentence, HasSubstr(" 2 more above."));
}

TEST(Judgement, many_hosts_are_counted) {
  ClusterFacts facts = made_cluster(20);
  for (int node = 0; node < 9; ++node) facts.nodes[static_cast<std::size_t>(node)].versions["HDF5"] = "2";
  EXPECT_THAT(verdict(facts).sentence, HasSubstr("bad: n1, n2, n3, n4 and 5 more. "));
  EXPECT_THAT(verdict(facts).hosts, SizeIs(9));
}

}  // namespace
}  // namespace lockstep

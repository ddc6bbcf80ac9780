// A fixed script of operations over all that a store can do, with what the oracle says and holds after each of them,
// and a run of it on a disk that fails somewhere.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/operations.h"
#include "sim/sim_node.h"
#include "spi/contract/memory_store.h"

namespace tocsin::sim {

using journal::SimNode;

struct Script {
  enum class Pump : uint8_t { kNone, kCommit, kAll };  // what the committer gets to do before the next operation
  struct Step {
    Operation operation;
    Millis wait{0};
    Pump pump = Pump::kAll;
    Reply expected;
    std::vector<MemoryStore> within;  // after each of its parts but the last
  };
  std::vector<Step> steps;
  std::vector<MemoryStore> states;  // [i]: before step i; the last one: at the end

  static journal::Options Options();
};

/// The same for the same arguments.
Script MakeScript(uint64_t seed, size_t operations);

/// Runs a script until its end, and then closes, or until the journal fails.
class ScriptRun {
 public:
  explicit ScriptRun(const Script& script);

  /// Gives up at the first answer that is wrong whatever fails: what the oracle did not say, or an ok after a failure.
  void Run();

  SimNode& node() { return *node_; }
  SimFileSystem& disk() { return node_->disk(); }
  Side& side() { return side_; }
  /// Steps that were begun, and the last one that was acknowledged: what is stored has to be the state after one of
  /// acknowledged() to issued() steps.
  size_t issued() const { return issued_; }
  size_t acknowledged() const { return acknowledged_; }
  /// The first error that an operation answered with.
  const std::string& error() const { return error_; }
  const std::string& wrong() const { return wrong_; }

 private:
  void Answered(size_t step, const Reply& reply);

  const Script& script_;
  std::unique_ptr<SimNode> node_;
  Side side_;
  size_t issued_ = 0;
  size_t acknowledged_ = 0;
  std::string error_;
  std::string wrong_;
};

/// Opens what a failed run left, at the moment at which it failed, and checks it against the script: the state after
/// one of the steps that it may be after; stale tokens; greater ids; and that it goes on working, across another
/// restart. Says what is wrong; nothing if all is well.
std::string CheckSurvivors(const Script& script, const ScriptRun& run, std::unique_ptr<SimFileSystem> disk,
                           Moment moment, std::vector<Token> old_tokens);

}  // namespace tocsin::sim

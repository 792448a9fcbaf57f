// What connects live objects with checkpoint entries: parameters under /model, visited state under any group.
#pragma once

#include <string>

#include "core/visit.h"
#include "layers/module.h"
#include "train/checkpoint.h"

namespace rowan {

void save_parameters(CheckpointWriter& writer, Module& model);  // /model/<parameter>
void load_parameters(Checkpoint& checkpoint, Module& model);    // strict shapes; problems come out of checkpoint.finish()

// visit_state(SaveVisitor) writes `name` as <group>/<name>: SaveVisitor(writer, "/optim").
class SaveVisitor final : public StateVisitor {
 public:
  SaveVisitor(CheckpointWriter& writer, std::string group) : writer_(writer), group_(std::move(group)) {}
  bool loading() const override { return false; }
  void operator()(const std::string& name, Tensor& value) override { add(name, value); }
  void operator()(const std::string& name, int64_t& value) override { add(name, value); }
  void operator()(const std::string& name, double& value) override { add(name, value); }
  void operator()(const std::string& name, std::vector<int32_t>& value) override { add(name, value); }
  void operator()(const std::string& name, std::vector<int64_t>& value) override { add(name, value); }
  void operator()(const std::string& name, std::vector<double>& value) override { add(name, value); }
  void operator()(const std::string& name, std::vector<uint8_t>& value) override { add(name, value); }

 private:
  template <class T>
  void add(const std::string& name, const T& value) {
    writer_.add(group_ + "/" + name, value);
  }
  CheckpointWriter& writer_;
  std::string group_;
};

class LoadVisitor final : public StateVisitor {
 public:
  LoadVisitor(Checkpoint& checkpoint, std::string group) : checkpoint_(checkpoint), group_(std::move(group)) {}
  bool loading() const override { return true; }
  void operator()(const std::string& name, Tensor& value) override { take(name, value); }
  void operator()(const std::string& name, int64_t& value) override { take(name, value); }
  void operator()(const std::string& name, double& value) override { take(name, value); }
  void operator()(const std::string& name, std::vector<int32_t>& value) override { take(name, value); }
  void operator()(const std::string& name, std::vector<int64_t>& value) override { take(name, value); }
  void operator()(const std::string& name, std::vector<double>& value) override { take(name, value); }
  void operator()(const std::string& name, std::vector<uint8_t>& value) override { take(name, value); }

 private:
  template <class T>
  void take(const std::string& name, T& value) {
    checkpoint_.take(group_ + "/" + name, value);
  }
  Checkpoint& checkpoint_;
  std::string group_;
};

}  // namespace rowan

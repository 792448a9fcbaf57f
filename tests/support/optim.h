// Helpers for optimizer tests: setting fields by name, gradients by hand, state into memory and back.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "core/error.h"
#include "optim/optimizer.h"

namespace rowan::test {

using FieldValue = std::variant<double, int64_t, bool, std::string>;
using FieldValues = std::map<std::string, FieldValue>;

// Sets fields by name. A name that no field has, or a value of another type, is an Error: a test must not set nothing.
class SetFields final : public FieldVisitor {
 public:
  SetFields(Optimizer& optimizer, const FieldValues& values) : values_(values) {
    optimizer.visit(*this);
    ROWAN_CHECK(used_ == values.size(), "[test] ", values.size() - used_, " of the fields do not exist");
  }
  void operator()(const char* name, double& v, const char*, const Limits&) override { set(name, v); }
  void operator()(const char* name, int64_t& v, const char*, const Limits&) override { set(name, v); }
  void operator()(const char* name, bool& v, const char*) override { set(name, v); }
  void operator()(const char* name, std::string& v, const char*, const Limits&) override { set(name, v); }
  void operator()(const char*, std::vector<std::string>&, const char*) override {}

 private:
  template <class T>
  void set(const char* name, T& to) {
    const auto found = values_.find(name);
    if (found == values_.end()) return;
    to = std::get<T>(found->second);
    ++used_;
  }
  const FieldValues& values_;
  size_t used_ = 0;
};

// Fields that are numbers, by name.
inline FieldValues fields_of(Optimizer& optimizer) {
  struct List final : FieldVisitor {
    void operator()(const char* name, double& v, const char*, const Limits&) override { all[name] = v; }
    void operator()(const char* name, int64_t& v, const char*, const Limits&) override { all[name] = v; }
    void operator()(const char*, bool&, const char*) override {}
    void operator()(const char*, std::string&, const char*, const Limits&) override {}
    void operator()(const char*, std::vector<std::string>&, const char*) override {}
    FieldValues all;
  } list;
  optimizer.visit(list);
  return list.all;
}

inline std::unique_ptr<Optimizer> make_rule(const std::string& rule, const FieldValues& fields = {}) {
  std::unique_ptr<Optimizer> optimizer = make_optimizer(rule);
  SetFields(*optimizer, fields);
  optimizer->validate();
  return optimizer;
}

inline void give_dense_grad(Parameter& p, const Tensor& grad) {
  p.grad() = grad.clone();
}
inline void give_row_grad(Parameter& p, const std::vector<int32_t>& ids, const Tensor& dy) {
  p.row_grad().append(Ids({static_cast<int64_t>(ids.size())}, ids), dy.clone());
}

// State in memory: saves copies, loads copies. Loading a name that was not saved is an Error.
class MemoryState final : public StateVisitor {
 public:
  using Value =
      std::variant<Tensor, int64_t, double, std::vector<int32_t>, std::vector<int64_t>, std::vector<double>, std::vector<uint8_t>>;

  void load() { loading_ = true; }
  bool loading() const override { return loading_; }
  const std::map<std::string, Value>& values() const { return values_; }
  std::map<std::string, Value>& values() { return values_; }

  void operator()(const std::string& name, Tensor& v) override {
    if (loading_) {
      v = std::get<Tensor>(find(name)).clone();
    } else {
      save(name, v.clone());
    }
  }
  void operator()(const std::string& name, int64_t& v) override { plain(name, v); }
  void operator()(const std::string& name, double& v) override { plain(name, v); }
  void operator()(const std::string& name, std::vector<int32_t>& v) override { plain(name, v); }
  void operator()(const std::string& name, std::vector<int64_t>& v) override { plain(name, v); }
  void operator()(const std::string& name, std::vector<double>& v) override { plain(name, v); }
  void operator()(const std::string& name, std::vector<uint8_t>& v) override { plain(name, v); }

 private:
  template <class T>
  void plain(const std::string& name, T& v) {
    if (loading_) {
      v = std::get<T>(find(name));
    } else {
      save(name, v);
    }
  }
  void save(const std::string& name, Value v) {
    ROWAN_CHECK(values_.emplace(name, std::move(v)).second, "[test] two states are called ", name);
  }
  const Value& find(const std::string& name) const {
    const auto found = values_.find(name);
    ROWAN_CHECK(found != values_.end(), "[test] no state is called ", name);
    return found->second;
  }

  bool loading_ = false;
  std::map<std::string, Value> values_;
};

}  // namespace rowan::test

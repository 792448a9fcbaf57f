// Module: something with parameters. Layers are value members of larger layers, each with a forward() of its own; whether it
// is training is an argument (Pass), never a hidden flag.
#pragma once

#include <string>

#include "core/parameter.h"
#include "core/rng.h"

namespace rowan {

class ParamVisitor;

struct Module {
  virtual ~Module() = default;
  virtual void visit(ParamVisitor& v) = 0;
};

// Sees every parameter once, under its full name: "blocks.0.attn.qkv.weight".
class ParamVisitor {
 public:
  virtual ~ParamVisitor() = default;

  void operator()(const std::string& name, Parameter& p) {
    if (p.present()) parameter(prefix_ + name, p);
  }
  void operator()(const std::string& name, Module& m) {
    const std::string outer = prefix_;
    prefix_ += name + ".";
    m.visit(*this);
    prefix_ = outer;
  }

 protected:
  virtual void parameter(const std::string& name, Parameter& p) = 0;

 private:
  std::string prefix_;
};

template <class F>
void for_each_parameter(Module& m, F&& f) {
  struct Each final : ParamVisitor {
    explicit Each(F& g) : call(g) {}
    void parameter(const std::string& name, Parameter& p) override { call(name, p); }
    F& call;
  } each(f);
  m.visit(each);
}

// One forward pass. Dropout draws from `key` at (site, position): the same pass always drops the same elements.
struct Pass {
  bool training = false;
  double dropout = 0;      // probability of dropping; used when training
  RandomKey key = {};      // seed and step (micro-batches count as steps of their own); purpose kDropout
  bool recompute = false;  // blocks keep their input alone for backward and compute the rest again: same bits, less memory
};

}  // namespace rowan

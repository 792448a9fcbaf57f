// Registry: name -> factory, filled by the files that define the things. Used for optimizers.
//
//   ROWAN_REGISTER_OPTIMIZER("adamw", AdamW);        // at the end of optim/adamw.cpp
//
// A static library drops objects that nothing refers to, and their registrations with them: librowan is linked whole, and a
// test names the rules it expects to find.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/error.h"

namespace rowan {

template <class T>
class Registry {
 public:
  using Factory = std::function<std::unique_ptr<T>()>;

  static Registry& instance() {
    static Registry registry;
    return registry;
  }

  bool add(const std::string& name, Factory factory) {
    ROWAN_CHECK(factories_.emplace(name, std::move(factory)).second, "[registry] two entries are called '", name, "'");
    return true;
  }
  bool contains(const std::string& name) const { return factories_.count(name) != 0; }
  std::vector<std::string> names() const {  // sorted
    std::vector<std::string> out;
    for (const auto& entry : factories_) out.push_back(entry.first);
    return out;
  }
  std::unique_ptr<T> make(const std::string& name) const {
    const auto it = factories_.find(name);
    if (it == factories_.end()) {
      std::string known;
      for (const std::string& n : names()) known += (known.empty() ? "" : ", ") + n;
      fail("[registry] nothing is called '", name, "'; known: ", known);
    }
    return it->second();
  }

 private:
  std::map<std::string, Factory> factories_;
};

}  // namespace rowan

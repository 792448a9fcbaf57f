// TapeObserver: told about every op that record() and backward() meet on a thread, for profiles. Nothing is called, and nothing
// but one test of a pointer is spent, while none is installed.
//
//   struct Count : TapeObserver { void op_done(const OpDone&) override { ++ops; } int ops = 0; } count;
//   const ObserveTape scope(count);
//
// Ops run one after the other, so what passed since the last call is the time of the op that has just ended. Ops under NoGrad go
// through record() and are seen as well.
#pragma once

#include <vector>

#include "core/variable.h"

namespace rowan {

struct OpDone {
  const char* op;
  bool backward;
  const Shape& shape;  // of the op's value
  const std::vector<Variable>& inputs;
};

class TapeObserver {
 public:
  virtual ~TapeObserver() = default;
  virtual void op_done(const OpDone& done) = 0;
};

// Installs an observer on this thread while it lives; the one before comes back afterwards.
class ObserveTape {
 public:
  explicit ObserveTape(TapeObserver& observer);
  ~ObserveTape();
  ObserveTape(const ObserveTape&) = delete;
  ObserveTape& operator=(const ObserveTape&) = delete;

 private:
  TapeObserver* previous_;
};

}  // namespace rowan

// oneDNN runs on OpenMP, whose number of threads is a setting of the calling thread.
#pragma once

// Declared here because only these two are needed, and <omp.h> may belong to another runtime than oneDNN's.
extern "C" {
void omp_set_num_threads(int);
int omp_get_max_threads(void);
}

namespace rowan {

// While it lives, oneDNN uses `count` threads under this one. The setting is put back, so that a program around us keeps its own.
class OpenMpThreads {
 public:
  explicit OpenMpThreads(int count) : before_(omp_get_max_threads()) {
    if (count != before_) omp_set_num_threads(count);
  }
  ~OpenMpThreads() {
    if (omp_get_max_threads() != before_) omp_set_num_threads(before_);
  }
  OpenMpThreads(const OpenMpThreads&) = delete;
  OpenMpThreads& operator=(const OpenMpThreads&) = delete;

 private:
  int before_;
};

}  // namespace rowan

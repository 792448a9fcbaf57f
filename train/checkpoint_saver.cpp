#include "train/checkpoint_saver.h"

#include <chrono>

namespace rowan {

CheckpointSaver::~CheckpointSaver() {
  if (thread_.joinable()) thread_.join();
}

void CheckpointSaver::start(CheckpointImage image, bool best, int64_t keep_last, int64_t keep_also) {
  ROWAN_ASSERT(!pending_.valid());
  auto work = [this, held = std::move(image), best, keep_last, keep_also, begin = std::chrono::steady_clock::now()] {
    run_.save(held);
    if (best) run_.set_best(held.step());
    SavedCheckpoint saved{.step = held.step(),
                          .path = run_.checkpoint_path(held.step()),
                          .bytes = static_cast<int64_t>(held.bytes().size()),
                          .problems = run_.retain(keep_last, keep_also)};
    saved.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return saved;
  };
  std::packaged_task<SavedCheckpoint()> task(std::move(work));
  pending_ = task.get_future();
  if (background_)
    thread_ = std::thread(std::move(task));
  else
    task();
}

std::optional<SavedCheckpoint> CheckpointSaver::collect(bool wait) {
  if (!pending_.valid()) return std::nullopt;
  if (!wait && pending_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return std::nullopt;
  if (thread_.joinable()) thread_.join();
  return pending_.get();
}

}  // namespace rowan

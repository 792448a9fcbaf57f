#include "train/checkpoint_saver.h"

#include <chrono>
#include <memory>
#include <system_error>

namespace rowan {

CheckpointSaver::~CheckpointSaver() {
  if (thread_.joinable()) thread_.join();
}

// A system that has no thread to give costs time, and no checkpoint.
bool CheckpointSaver::start_thread(const std::function<void()>& work) {
  try {
    thread_ = std::thread(work);
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

void CheckpointSaver::start(CheckpointImage image, bool best, int64_t keep_last, int64_t keep_also) {
  ROWAN_ASSERT(!pending_.valid());
  auto work = [this, held = std::move(image), best, keep_last, keep_also, begin = std::chrono::steady_clock::now()] {
    run_.save(held);
    if (best) run_.set_best(held.step());
    SavedCheckpoint saved{.step = held.step(),
                          .path = run_.checkpoint_path(held.step()),
                          .bytes = static_cast<int64_t>(held.bytes().size()),
                          .problems = run_.retain(keep_last, {keep_also, held.step()})};
    saved.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return saved;
  };
  const auto task = std::make_shared<std::packaged_task<SavedCheckpoint()>>(std::move(work));
  pending_ = task->get_future();
  if (!background_ || !start_thread([task] { (*task)(); })) (*task)();
}

std::optional<SavedCheckpoint> CheckpointSaver::collect(bool wait) {
  if (!pending_.valid()) return std::nullopt;
  if (!wait && pending_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return std::nullopt;
  if (thread_.joinable()) thread_.join();
  return pending_.get();
}

}  // namespace rowan

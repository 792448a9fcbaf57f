#include "train/run_start.h"

namespace rowan {

void write_description(TrainSession& session, const RunDir& run) {
  publish_text(run.config_path(), resolved_toml(session.config()), IfExists::kReplace);
  publish_text(run.file("tokenizer.json"), session.corpus().tokenizer->serialize(), IfExists::kReplace);
}

}  // namespace rowan

// A tiny model with all rounding to fewer bits than F32 taken out: weights converted, a
// cache of F32. What is left when two ways of computing differ is the order of sums.
#pragma once

#include <memory>
#include <string>

#include "support/engine.h"
#include "support/gguf_builder.h"
#include "support/model_files.h"
#include "support/temp_dir.h"

namespace forerun::test {

struct F32Copy {
  explicit F32Copy(const std::string& name, int n_cells = 512) {
    copy_gguf(model_file(name), dir.file("f32.gguf"), to_f32);
    model = load_model(dir.file("f32.gguf"));
    executor = make_executor(model, KvType::kF32, n_cells);
  }
  TempDir dir;
  std::shared_ptr<const Model> model;
  std::unique_ptr<Executor> executor;
};

}  // namespace forerun::test

#pragma once

#include "model/kv_cache.h"

namespace forerun {

struct ExecutorOptions {
  KvOptions kv;
  int max_rows = 512;  // of one pass; longer prompts are read in several
  // Smaller passes are filled up to so many rows, for devices whose results depend on the
  // number of rows: a token's logits are then the same bits alone and behind a chain of
  // others.
  int min_rows = 1;
  // Text with drafts has to be the text without: where nothing else promises that, no drafts are made.
  bool is_exact = false;
};

}  // namespace forerun

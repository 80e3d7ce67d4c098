#include "text/token_streamer.h"

namespace forerun {

TokenStreamer::TokenStreamer(const Vocabulary& vocabulary, Options options)
    : vocabulary_(&vocabulary),
      control_(options.control),
      drop_space_(options.at_text_start && vocabulary.adds_space_prefix()) {}

std::string TokenStreamer::push(TokenId token, ControlTokens control) {
  std::string bytes = vocabulary_->piece(token, control);
  if (drop_space_ && !vocabulary_->is_control(token)) {
    if (bytes.starts_with(' ')) bytes.erase(0, 1);
    drop_space_ = false;
  }
  return utf8_.push(bytes);
}

}  // namespace forerun

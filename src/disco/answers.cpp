#include "disco/answers.h"

#include "engine/discard_guard.h"

namespace forerun {

std::vector<SearchText> answer_prompts(Stepper& stepper,
                                       const std::vector<std::vector<TokenId>>& prompts,
                                       const AnsweringOptions& options) {
  std::vector<SearchText> texts;
  std::vector<std::optional<RequestId>> open;
  std::vector<DiscardGuard> guards;  // for those that nobody takes, however this ends
  for (const auto& prompt : prompts) {
    open.push_back(stepper.submit({.prompt = prompt, .options = options.generation}));
    guards.emplace_back(stepper, *open.back());
    texts.push_back({.tokens = prompt, .n_prompt = prompt.size()});
  }
  size_t n_done = 0;
  while (n_done < prompts.size()) {
    if (options.is_cancelled && options.is_cancelled()) break;
    stepper.step();
    for (size_t i = 0; i < open.size(); ++i) {
      if (!open[i]) continue;
      auto result = stepper.take(*open[i]);
      if (!result) continue;
      if (auto* error = std::get_if<std::exception_ptr>(&*result)) std::rethrow_exception(*error);
      const std::vector<TokenId>& answer = std::get<Generation>(*result).tokens;
      texts[i].tokens.insert(texts[i].tokens.end(), answer.begin(), answer.end());
      open[i].reset();
      ++n_done;
      if (options.progress) {
        options.progress(static_cast<double>(n_done) / static_cast<double>(prompts.size()));
      }
    }
  }
  std::erase_if(texts, [](const SearchText& text) { return text.tokens.size() == text.n_prompt; });
  return texts;
}

}  // namespace forerun

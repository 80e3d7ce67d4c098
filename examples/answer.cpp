// Answers the prompts given on the command line, all at once, and says what drafting did.
//
//   answer MODEL PROMPT...
#include <forerun/engine.h>

#include <cstdio>
#include <vector>

int main(int argc, char** argv) {
  if (argc < 3) return std::fprintf(stderr, "usage: answer MODEL PROMPT...\n"), 1;
  try {
    forerun::EngineOptions options;
    options.model = argv[1];
    options.n_parallel = argc - 2;
    options.n_context = 1024;
    forerun::Engine engine(options);

    std::vector<forerun::RequestId> requests;
    for (int i = 2; i < argc; ++i) {
      forerun::Request request{.prompt = engine.tokenizer().tokenize(argv[i])};
      request.options.max_tokens = 64;
      request.options.sampling.seed = 1;
      requests.push_back(engine.submit(request));
    }
    while (engine.step()) {
    }
    for (const forerun::RequestId request : requests) {
      std::printf("%s\n---\n", engine.take(request)->text.c_str());
    }
    std::printf("%.2f tokens per pass\n", engine.statistics().speculation.tokens_per_step());
  } catch (const forerun::Error& error) {
    return std::fprintf(stderr, "answer: %s\n", error.what()), 1;
  }
}

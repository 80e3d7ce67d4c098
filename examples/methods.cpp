// Lists the drafting methods and their options, or those of one method.
//
//   methods [METHOD]
#include <forerun/drafting_methods.h>
#include <forerun/error.h>

#include <cstdio>

namespace {

void print(const forerun::DraftingMethod& method) {
  std::printf("%s: %s\n", method.name.c_str(), method.summary.c_str());
  for (const forerun::DraftingOption& option : method.options) {
    std::printf("  %s=%s: %s\n", option.name.c_str(), option.usual.c_str(), option.help.c_str());
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc > 1) {
      print(forerun::drafting_method(argv[1]));
    } else {
      for (const forerun::DraftingMethod& method : forerun::drafting_methods()) print(method);
    }
  } catch (const forerun::Error& error) {
    return std::fprintf(stderr, "methods: %s\n", error.what()), 1;
  }
}

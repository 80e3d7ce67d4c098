// Prompts for the middle of a text, put together by the tokens of a model that has marks for it.
#include "serve/protocol/infill_prompt.h"

#include <forerun/engine.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/byte_model.h"
#include "support/temp_dir.h"

namespace forerun {
namespace {

enum class Marks { kNone, kGap, kGapAndFiles };

// A tokenizer of bytes, with these marks behind them.
Tokenizer byte_tokenizer(Marks marks, bool adds_bos = false) {
  std::vector<TestToken> tokens = byte_pair_tokens();
  if (marks != Marks::kNone) {
    for (const char* name : {"<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>"})
      tokens.push_back({name, kControl});
  }
  if (marks == Marks::kGapAndFiles) {
    for (const char* name : {"<|repo_name|>", "<|file_sep|>"}) tokens.push_back({name, kControl});
  }
  test::GgufBuilder builder = test::tiny_model({.n_vocab = static_cast<int>(tokens.size())});
  gguf_set_kv(builder.metadata(), make_byte_pair().get());
  set_tokens(builder.metadata(), tokens);
  gguf_set_val_bool(builder.metadata(), "tokenizer.ggml.add_bos_token", adds_bos);
  const test::TempDir folder;
  builder.write(folder.file("model.gguf"));
  EngineOptions options;
  options.model = folder.file("model.gguf").string();
  options.device = "cpu";
  options.n_threads = 1;
  options.pin_threads = false;
  options.n_context = 32;
  options.speculation.method = "none";
  return Engine(options).tokenizer();
}

// The prompt's tokens by their names.
std::string shown(const InfillParts& parts, const Tokenizer& tokenizer, int max_tokens = 1000) {
  const auto prompt = infill_prompt(parts, tokenizer, max_tokens);
  if (!prompt) return "nothing";
  EXPECT_LE(static_cast<int>(prompt->size()), max_tokens);
  std::string text;
  for (const TokenId token : *prompt) text += tokenizer.piece(token);
  return text;
}

TEST(InfillPromptTest, PartsBetweenMarks) {
  const Tokenizer tokenizer = byte_tokenizer(Marks::kGap);
  EXPECT_EQ(shown({.before = "int a", .after = ";\n", .begun = " = "}, tokenizer),
            "<|fim_prefix|>int a = <|fim_suffix|>;\n<|fim_middle|>");
  EXPECT_EQ(shown({}, tokenizer), "<|fim_prefix|><|fim_suffix|><|fim_middle|>");
  EXPECT_EQ(shown({.before = "x"}, byte_tokenizer(Marks::kGap, /*adds_bos=*/true)),
            "<|im_start|><|fim_prefix|>x<|fim_suffix|><|fim_middle|>");
}

TEST(InfillPromptTest, MarksInATextAreText) {
  const Tokenizer tokenizer = byte_tokenizer(Marks::kGap);
  const auto prompt = infill_prompt({.before = "<|fim_middle|>"}, tokenizer, 1000).value();
  EXPECT_EQ(std::count(prompt.begin(), prompt.end(), *tokenizer.infill_tokens().middle), 1);
}

TEST(InfillPromptTest, OtherFilesComeFirst) {
  const InfillParts parts{.before = "x",
                          .after = "y",
                          .begun = "",
                          .files = {{.name = "a.h", .text = "A"}, {.name = "b.h", .text = "B"}}};
  EXPECT_EQ(shown(parts, byte_tokenizer(Marks::kGapAndFiles)),
            "<|repo_name|>myproject\n<|file_sep|>a.h\nA<|file_sep|>b.h\nB<|file_sep|>filename\n"
            "<|fim_prefix|>x<|fim_suffix|>y<|fim_middle|>");
  EXPECT_EQ(shown(parts, byte_tokenizer(Marks::kGap)),
            "\n\n--- snippet ---\n\nA\n\n--- snippet ---\n\nB"
            "<|fim_prefix|>x<|fim_suffix|>y<|fim_middle|>");
}

TEST(InfillPromptTest, WhatIsNearestToTheGapIsKept) {
  const Tokenizer tokenizer = byte_tokenizer(Marks::kGapAndFiles);
  const InfillParts both{.before = "abcdefghijklmnop", .after = "ABCDEFGHIJKLMNOP", .begun = "_"};
  EXPECT_EQ(shown(both, tokenizer, 12), "<|fim_prefix|>klmnop_<|fim_suffix|>AB<|fim_middle|>");
  EXPECT_EQ(shown(both, tokenizer, 4), "<|fim_prefix|>_<|fim_suffix|><|fim_middle|>");
  EXPECT_EQ(shown(both, tokenizer, 3), "nothing");
  // What one does not need is the other's.
  EXPECT_EQ(shown({.before = "ab", .after = "ABCDEFGHIJ"}, tokenizer, 11),
            "<|fim_prefix|>ab<|fim_suffix|>ABCDEF<|fim_middle|>");
  EXPECT_EQ(shown({.before = "abcdefghij", .after = "A"}, tokenizer, 11),
            "<|fim_prefix|>defghij<|fim_suffix|>A<|fim_middle|>");
  // Whole files, the last one first.
  const InfillParts files{.before = "x",
                          .after = "y",
                          .begun = "",
                          .files = {{.name = "a", .text = "AAAA"}, {.name = "b", .text = "BB"}}};
  const std::string rest = "<|fim_prefix|>x<|fim_suffix|>y<|fim_middle|>";
  EXPECT_EQ(shown(files, tokenizer, 26), rest)
      << "11 of the project, 10 of the file, 5 of the other one";
  const std::string with_b = "<|repo_name|>myproject\n<|file_sep|>b\nBB<|file_sep|>filename\n" + rest;
  EXPECT_EQ(shown(files, tokenizer, 31), with_b);
  EXPECT_EQ(shown(files, tokenizer, 32), with_b);
}

TEST(InfillPromptTest, ModelsWithoutMarksSaySo) {
  EXPECT_NO_THROW(check_infill(byte_tokenizer(Marks::kGap)));
  try {
    check_infill(byte_tokenizer(Marks::kNone));
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
    EXPECT_NE(std::string(error.what()).find("prefix, suffix, middle"), std::string::npos);
  }
}

TEST(InfillPromptTest, PartsOfARequest) {
  const InfillParts parts = read_infill_parts(parse_object(R"({"input_prefix": "a", "input_suffix": "b",
    "prompt": "c", "input_extra": [{"text": "d"}, {"text": "e", "filename": "f"}]})"));
  EXPECT_EQ(parts.before + parts.after + parts.begun, "abc");
  ASSERT_EQ(parts.files.size(), 2u);
  EXPECT_EQ(parts.files[0].name + parts.files[0].text, "tmpd");
  EXPECT_EQ(parts.files[1].name + parts.files[1].text, "fe");
  for (const char* request :
       {"{}", R"({"input_prefix": "a"})", R"({"input_suffix": "a"})",
        R"({"input_prefix": "a", "input_suffix": 3})",
        R"({"input_prefix": "a", "input_suffix": "b", "prompt": 3})",
        R"({"input_prefix": "a", "input_suffix": "b", "input_extra": {}})",
        R"({"input_prefix": "a", "input_suffix": "b", "input_extra": ["x"]})",
        R"({"input_prefix": "a", "input_suffix": "b", "input_extra": [{"filename": "x"}]})"}) {
    EXPECT_THROW(read_infill_parts(parse_object(request)), Error) << request;
  }
}

}  // namespace
}  // namespace forerun

#include "serve/protocol/token_endpoints.h"

#include "api/generation_json.h"
#include "core/error.h"
#include "serve/protocol/json_fields.h"
#include "text/utf8.h"

namespace forerun {
namespace {

Json piece_json(TokenId token, const Tokenizer& tokenizer) {
  const std::string piece = tokenizer.piece(token);
  if (is_valid_utf8(piece)) return piece;
  return std::vector<uint8_t>(piece.begin(), piece.end());
}

}  // namespace

HttpResponse tokenize(const HttpRequest& request, const ModelContext& model) {
  const Json body = parse_object(request.body);
  const auto content = string_field(body, "content");
  if (!content) fail(ErrorCode::kInvalidArgument, "\"content\" is missing: the text to tokenize");
  const auto tokens = model.tokenizer.tokenize(
      *content, {.add_special = bool_field(body, "add_special").value_or(false),
                 .parse_special = bool_field(body, "parse_special").value_or(true)});
  if (!bool_field(body, "with_pieces").value_or(false)) {
    return {.body = to_text({{"tokens", token_numbers(tokens)}})};
  }
  Json list = Json::array();
  for (const TokenId token : tokens) {
    list.push_back({{"id", to_int(token)}, {"piece", piece_json(token, model.tokenizer)}});
  }
  return {.body = to_text({{"tokens", list}})};
}

HttpResponse detokenize(const HttpRequest& request, const ModelContext& model) {
  const Json body = parse_object(request.body);
  const Json* numbers = array_field(body, "tokens");
  if (numbers == nullptr) fail(ErrorCode::kInvalidArgument, "\"tokens\" is missing: an array of tokens");
  std::vector<TokenId> tokens;
  for (const Json& number : *numbers) {
    if (!number.is_number_integer())
      fail(ErrorCode::kInvalidArgument, "\"tokens\" must hold whole numbers");
    const auto id = number.get<int64_t>();
    if (id < 0 || id >= model.tokenizer.n_tokens()) {
      fail(ErrorCode::kInvalidArgument, "\"tokens\" has {}, but the vocabulary has 0 to {}", id,
           model.tokenizer.n_tokens() - 1);
    }
    tokens.push_back(TokenId{static_cast<int32_t>(id)});
  }
  return {.body = to_text({{"content", model.tokenizer.detokenize(tokens)}})};
}

}  // namespace forerun

#include "serve/protocol/json_fields.h"

#include <cmath>

#include "core/error.h"

namespace forerun {
namespace {

// Deeper ones would need as much of a thread's stack to be read and written.
constexpr int kMaxDepth = 200;

[[noreturn]] void fail_type(const std::string& name, const char* type) {
  fail(ErrorCode::kInvalidArgument, "\"{}\" must be {}", name, type);
}

template <typename Is>
const Json* field_of_type(const Json& object, const std::string& name, Is is, const char* type) {
  const Json* field = find_field(object, name);
  if (field != nullptr && !is(*field)) fail_type(name, type);
  return field;
}

}  // namespace

Json parse_object(std::string_view body) {
  bool is_too_deep = false;
  const auto watch = [&](int depth, Json::parse_event_t, const Json&) {
    is_too_deep |= depth > kMaxDepth;
    return !is_too_deep;
  };
  Json json = Json::parse(body, watch, /*allow_exceptions=*/false);
  if (is_too_deep)
    fail(ErrorCode::kInvalidArgument, "the JSON is nested more than {} levels deep", kMaxDepth);
  if (json.is_discarded()) fail(ErrorCode::kInvalidArgument, "the body is no valid JSON");
  if (!json.is_object()) fail(ErrorCode::kInvalidArgument, "the body must be a JSON object");
  return json;
}

std::string to_text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

const Json* find_field(const Json& object, const std::string& name) {
  const auto found = object.find(name);
  return found != object.end() && !found->is_null() ? &*found : nullptr;
}

std::optional<bool> bool_field(const Json& object, const std::string& name) {
  const Json* field = field_of_type(
      object, name, [](const Json& json) { return json.is_boolean(); }, "true or false");
  return field != nullptr ? std::optional(field->get<bool>()) : std::nullopt;
}

std::optional<std::string> string_field(const Json& object, const std::string& name) {
  const Json* field = field_of_type(
      object, name, [](const Json& json) { return json.is_string(); }, "a string");
  return field != nullptr ? std::optional(field->get<std::string>()) : std::nullopt;
}

const Json* object_field(const Json& object, const std::string& name) {
  return field_of_type(
      object, name, [](const Json& json) { return json.is_object(); }, "an object");
}

const Json* array_field(const Json& object, const std::string& name) {
  return field_of_type(
      object, name, [](const Json& json) { return json.is_array(); }, "an array");
}

std::optional<double> number_field(const Json& object, const std::string& name, double least,
                                   double most) {
  const Json* field = field_of_type(
      object, name, [](const Json& json) { return json.is_number(); }, "a number");
  if (field == nullptr) return std::nullopt;
  const double number = field->get<double>();
  if (!(number >= least && number <= most)) {
    fail(ErrorCode::kInvalidArgument, "\"{}\" is {}, but must be between {} and {}", name, number, least,
         most);
  }
  return number;
}

std::optional<int> int_field(const Json& object, const std::string& name, int least, int most) {
  const auto number = number_field(object, name, least, most);
  if (!number) return std::nullopt;
  if (*number != std::floor(*number)) fail_type(name, "a whole number");
  return static_cast<int>(*number);
}

}  // namespace forerun

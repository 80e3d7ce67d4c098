#include "serve/protocol/response_format.h"

#include "core/error.h"

namespace forerun {
namespace {

std::string schema_of(const Json& format) {
  const auto type = string_field(format, "type").value_or("text");
  if (type == "text") return "";
  if (type == "json_object") {
    const Json* schema = object_field(format, "schema");
    return schema != nullptr ? to_text(*schema) : R"({"type":"object"})";
  }
  if (type == "json_schema") {
    const Json* wrapped = object_field(format, "json_schema");
    const Json* schema = object_field(wrapped != nullptr ? *wrapped : format, "schema");
    if (schema != nullptr) return to_text(*schema);
    fail(ErrorCode::kInvalidArgument, "\"response_format\" of type \"json_schema\" has no \"schema\"");
  }
  fail(ErrorCode::kInvalidArgument,
       "\"response_format\" must be of type \"text\", \"json_object\" or \"json_schema\", not \"{}\"",
       type);
}

}  // namespace

ResponseFormat read_response_format(const Json& request) {
  ResponseFormat result;
  result.grammar = string_field(request, "grammar").value_or("");
  if (const Json* format = object_field(request, "response_format")) result.schema = schema_of(*format);
  if (const Json* schema = object_field(request, "json_schema")) result.schema = to_text(*schema);
  if (!result.schema.empty() && !result.grammar.empty()) {
    fail(ErrorCode::kInvalidArgument, "either a schema or \"grammar\" can be followed, not both");
  }
  return result;
}

}  // namespace forerun

// Fields of a request's JSON, checked: what is wrong with one is an Error that names it.
#pragma once

#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace forerun {

using Json = nlohmann::ordered_json;

// A request's body. Throws Error{kInvalidArgument} where it is no JSON object, or nested too deeply.
Json parse_object(std::string_view body);
// As one line. Bytes that are no UTF-8 are replaced.
std::string to_text(const Json& json);

// Each returns the field, or nothing where it is absent or null. Throws Error{kInvalidArgument} where it
// is of another type.
const Json* find_field(const Json& object, const std::string& name);
std::optional<bool> bool_field(const Json& object, const std::string& name);
std::optional<std::string> string_field(const Json& object, const std::string& name);
const Json* object_field(const Json& object, const std::string& name);
const Json* array_field(const Json& object, const std::string& name);
// Within these bounds, both included.
std::optional<double> number_field(const Json& object, const std::string& name,
                                   double least = std::numeric_limits<double>::lowest(),
                                   double most = std::numeric_limits<double>::max());
std::optional<int> int_field(const Json& object, const std::string& name,
                             int least = std::numeric_limits<int>::min(),
                             int most = std::numeric_limits<int>::max());

}  // namespace forerun

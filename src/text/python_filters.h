// Filters and methods of chat templates that llama.cpp's engine has otherwise than Python, or not at
// all.
#pragma once

#include <string>

#include "jinja/runtime.h"

namespace forerun {

// Arguments as the template gives them: places first, then names.
using PythonFunction = jinja::value (*)(const jinja::value& input, const jinja::func_args& arguments);

// nullptr: the engine's own does.
PythonFunction python_filter(const std::string& name, const jinja::value& input);
PythonFunction python_method(const std::string& name, const jinja::value& input,
                             const jinja::func_args& arguments);

}  // namespace forerun

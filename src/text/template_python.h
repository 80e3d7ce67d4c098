// Makes a chat template mean what it means to Python's Jinja, for which all are written.
//
// llama.cpp's engine is laxer: it prints nothing where there is None or a dictionary, takes what is
// missing for an empty text, counts bytes where Python counts characters, and so on. The parts of a
// program where that matters become nodes of ours, which do as Python does, or throw std::runtime_error
// where it would raise.
#pragma once

#include "jinja/runtime.h"

namespace forerun {

void follow_python(jinja::program& program);

}  // namespace forerun

// Nodes of a chat template's program that do as Python does. Each takes the place of one of the
// engine's.
#pragma once

#include <string>

#include "jinja/runtime.h"

namespace forerun {

// {{ x }}, and the sides of x ~ y: what str() makes of x.
jinja::statement_ptr text_node(jinja::statement_ptr inner);
// The x of x.y and x[y], which must be defined.
jinja::statement_ptr owner_node(jinja::statement_ptr inner);
// What a loop goes through: of a text, its characters.
jinja::statement_ptr sequence_node(jinja::statement_ptr inner);
// x[y] and x[a:b:c], which count characters where x is a text; `member` is the engine's node of it.
jinja::statement_ptr element_node(jinja::statement_ptr member);
// x + y, of which neither is undefined, and both are texts or none is.
jinja::statement_ptr sum_node(const jinja::token& plus, jinja::statement_ptr left,
                              jinja::statement_ptr right);
// x | name(arguments), and x.name(arguments): with python_filters.h, and else as the engine has them.
jinja::statement_ptr filter_node(jinja::statement_ptr operand, const std::string& name,
                                 jinja::statements arguments);
jinja::statement_ptr method_node(jinja::statement_ptr owner, const std::string& name,
                                 jinja::statements arguments);

}  // namespace forerun

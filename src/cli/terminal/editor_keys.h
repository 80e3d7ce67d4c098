// What keys do in the line editor beyond what libedit does by itself: pasting keeps line ends,
// and deleting and moving go by what a reader takes for one character.
#pragma once

#include <histedit.h>

namespace forerun {

void set_editor_keys(EditLine* edit);

}  // namespace forerun

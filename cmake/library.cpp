// The shared library is made of the project's own libraries; this is what it needs beside
// them: a source file.
#include <forerun/engine.h>

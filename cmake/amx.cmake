# ggml's AMX products miscompile with GCC 12 (see amx_probe.c): the program would die
# of an illegal instruction. Try the machine and the compiler, then again with the
# optimisation at fault switched off for the one file, and do without AMX if neither
# works.

if(NOT FORERUN_NATIVE OR CMAKE_CROSSCOMPILING OR NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  return()
endif()

include(CheckCSourceCompiles)
set(CMAKE_REQUIRED_FLAGS -march=native)
check_c_source_compiles("
  #if !defined(__AMX_TILE__) || !defined(__AMX_INT8__)
  #error no AMX
  #endif
  int main(void) { return 0; }" FORERUN_CPU_HAS_AMX)
unset(CMAKE_REQUIRED_FLAGS)
if(NOT FORERUN_CPU_HAS_AMX)
  return()
endif()

function(_forerun_try_amx result)
  try_run(exit_code compiled SOURCES "${CMAKE_CURRENT_SOURCE_DIR}/cmake/amx_probe.c"
    COMPILE_DEFINITIONS -O3 -march=native ${ARGN})
  if(compiled AND exit_code EQUAL 0)
    set(${result} ON CACHE INTERNAL "")
  else()
    set(${result} OFF CACHE INTERNAL "")
  endif()
endfunction()

set(_no_dse -fno-dse -fno-tree-dse)
if(NOT DEFINED FORERUN_AMX_WORKS)
  _forerun_try_amx(FORERUN_AMX_WORKS)
endif()
if(NOT FORERUN_AMX_WORKS AND NOT DEFINED FORERUN_AMX_WORKS_WITHOUT_DSE)
  _forerun_try_amx(FORERUN_AMX_WORKS_WITHOUT_DSE ${_no_dse})
endif()

if(FORERUN_AMX_WORKS)
  message(STATUS "AMX: works")
elseif(FORERUN_AMX_WORKS_WITHOUT_DSE)
  message(STATUS "AMX: works without dead-store elimination")
  set_source_files_properties("${FORERUN_LLAMA_CPP}/ggml/src/ggml-cpu/amx/mmq.cpp"
    TARGET_DIRECTORY ggml-cpu PROPERTIES COMPILE_OPTIONS "${_no_dse}")
else()
  message(STATUS "AMX: advertised by the CPU but does not work here, not used")
  target_compile_options(ggml-cpu PRIVATE -mno-amx-tile -mno-amx-int8 -mno-amx-bf16)
endif()

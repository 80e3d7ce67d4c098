# The library as others use it, fetched or installed: forerun::forerun.
#
# One shared library holds everything and shows only what the public headers mark with
# FORERUN_API, so that users need neither ggml's targets nor its flags.
include(GNUInstallDirs)

add_library(forerun_library SHARED "${PROJECT_SOURCE_DIR}/cmake/library.cpp")
add_library(forerun::forerun ALIAS forerun_library)
set_target_properties(forerun_library PROPERTIES
  OUTPUT_NAME forerun
  EXPORT_NAME forerun
  VERSION "${PROJECT_VERSION}"
  SOVERSION "${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}")
target_link_libraries(forerun_library PRIVATE "$<LINK_LIBRARY:WHOLE_ARCHIVE,forerun_api>")
target_compile_features(forerun_library PUBLIC cxx_std_20)
target_include_directories(forerun_library INTERFACE
  "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>" "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")

# What llama.cpp's libraries show is for us alone, and so are the functions that clang shows where there are
# clones for several CPUs (src/sampling/cpu_clones.h), whatever it is told of visibility.
foreach(_target ${FORERUN_LLAMA_LIBRARIES} forerun_sampling)
  target_link_options(forerun_library PRIVATE "-Wl,--exclude-libs,$<TARGET_FILE_NAME:${_target}>")
endforeach()

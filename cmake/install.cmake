# What `make install` installs: the program, and the library with its headers as the CMake
# package `forerun`:
#
#   find_package(forerun REQUIRED)
#   target_link_libraries(app PRIVATE forerun::forerun)
#
# One shared library holds everything and shows only namespace forerun, so that users need
# neither ggml's targets nor its flags.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

add_library(forerun_library SHARED "${CMAKE_CURRENT_SOURCE_DIR}/cmake/library.cpp")
set_target_properties(forerun_library PROPERTIES
  OUTPUT_NAME forerun
  EXPORT_NAME forerun
  VERSION "${PROJECT_VERSION}"
  SOVERSION "${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}"
  LINK_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/cmake/library.map")
target_link_options(forerun_library PRIVATE
  "-Wl,--version-script=${CMAKE_CURRENT_SOURCE_DIR}/cmake/library.map")
target_link_libraries(forerun_library PRIVATE
  "$<LINK_LIBRARY:WHOLE_ARCHIVE,forerun_api>")
target_compile_features(forerun_library PUBLIC cxx_std_20)
target_include_directories(forerun_library INTERFACE "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")

install(TARGETS forerun RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
install(TARGETS forerun_library EXPORT forerunTargets LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(DIRECTORY include/forerun DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
set(_package "${CMAKE_INSTALL_LIBDIR}/cmake/forerun")
install(EXPORT forerunTargets NAMESPACE forerun:: FILE forerunConfig.cmake DESTINATION "${_package}")
write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/forerunConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/forerunConfigVersion.cmake" DESTINATION "${_package}")

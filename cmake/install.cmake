# What `make install` installs: the program, and the library with its headers as the CMake
# package `forerun`:
#
#   find_package(forerun REQUIRED)
#   target_link_libraries(app PRIVATE forerun::forerun)
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

if(FORERUN_PROGRAM)
  install(TARGETS forerun RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()
install(TARGETS forerun_library EXPORT forerunTargets LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/forerun" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
set(_package "${CMAKE_INSTALL_LIBDIR}/cmake/forerun")
install(EXPORT forerunTargets NAMESPACE forerun:: FILE forerunConfig.cmake DESTINATION "${_package}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/forerunConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/forerunConfigVersion.cmake" DESTINATION "${_package}")

# Third-party libraries, from the system's packages (scripts/deps installs them).
if(APPLE)
  # Homebrew keeps these out of the default search path, since macOS has its own.
  foreach(keg libedit openssl@3)
    execute_process(COMMAND brew --prefix ${keg} OUTPUT_VARIABLE keg_folder
      OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    set(ENV{PKG_CONFIG_PATH} "${keg_folder}/lib/pkgconfig:$ENV{PKG_CONFIG_PATH}")
  endforeach()
endif()
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(CRYPTO REQUIRED IMPORTED_TARGET libcrypto)
pkg_check_modules(UTF8PROC REQUIRED IMPORTED_TARGET libutf8proc)
pkg_check_modules(EDIT REQUIRED IMPORTED_TARGET libedit)
pkg_check_modules(EVENT REQUIRED IMPORTED_TARGET libevent libevent_pthreads)
if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
  # Without it files are read by threads; older ones cannot fill a table of buffers bit by bit.
  pkg_check_modules(LIBURING IMPORTED_TARGET liburing>=2.2)
endif()

add_library(plumb_libraries INTERFACE)
target_link_libraries(plumb_libraries INTERFACE
  PkgConfig::JANSSON PkgConfig::PCRE2 PkgConfig::XXHASH PkgConfig::CRYPTO PkgConfig::UTF8PROC
  Threads::Threads m
  $<TARGET_NAME_IF_EXISTS:PkgConfig::LIBURING>)

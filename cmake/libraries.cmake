# Third-party libraries, from the system's packages (scripts/deps installs them).
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(UTF8PROC REQUIRED IMPORTED_TARGET libutf8proc)
pkg_check_modules(EDIT REQUIRED IMPORTED_TARGET libedit)

add_library(plumb_libraries INTERFACE)
target_link_libraries(plumb_libraries INTERFACE
  PkgConfig::JANSSON PkgConfig::PCRE2 PkgConfig::XXHASH PkgConfig::UTF8PROC Threads::Threads m)

# The page of `plumb serve` as C.
#
# Included by src/server: PLUMB_PAGE_FILES is the source that defines `plumb__page_files` (src/server/page.h).
#
#   cmake -DROOT=src/server/web -DSOURCE=page_files.c -P web_page.cmake
#
# writes it: index.html is the path /, every other file is /page/NAME.  Bytes as numbers, since compilers need
# not take string literals of this length; the entity tag is the start of their SHA-256.
if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(PLUMB_PAGE_FILES ${CMAKE_CURRENT_BINARY_DIR}/page_files.c)
  file(GLOB parts CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/web/*)
  add_custom_command(OUTPUT ${PLUMB_PAGE_FILES}
    COMMAND ${CMAKE_COMMAND} -DROOT=${CMAKE_CURRENT_SOURCE_DIR}/web -DSOURCE=${PLUMB_PAGE_FILES}
      -P ${CMAKE_CURRENT_LIST_FILE}
    DEPENDS ${parts} ${CMAKE_CURRENT_LIST_FILE} VERBATIM)
  return()
endif()
cmake_minimum_required(VERSION 3.22)
get_filename_component(ROOT ${ROOT} ABSOLUTE)

set(type_html "text/html; charset=utf-8")
set(type_css "text/css; charset=utf-8")
set(type_js "text/javascript; charset=utf-8")
set(type_svg "image/svg+xml")

file(GLOB names RELATIVE ${ROOT} ${ROOT}/*)
list(SORT names)
if(NOT "index.html" IN_LIST names)
  message(FATAL_ERROR "no index.html below ${ROOT}")
endif()
set(arrays "")
set(rows "")
set(number 0)
foreach(name IN LISTS names)
  string(REGEX MATCH "[a-z]+$" ending "${name}")
  if(NOT name MATCHES "^[a-z0-9_]+\\.[a-z]+$" OR NOT type_${ending})
    message(FATAL_ERROR "${name}: a file of the page has a plain name and ends in .html, .css, .js or .svg")
  endif()
  set(path "/page/${name}")
  if(name STREQUAL "index.html")
    set(path "/")
  endif()
  file(SHA256 ${ROOT}/${name} digest)
  string(SUBSTRING ${digest} 0 32 tag)
  file(READ ${ROOT}/${name} bytes HEX)
  string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(APPEND arrays "static const unsigned char file_${number}[] = { /* ${name} */\n${bytes}};\n")
  string(APPEND rows "    {\"${path}\", \"${type_${ending}}\", \"\\\"${tag}\\\"\", file_${number}, sizeof file_${number}},\n")
  math(EXPR number "${number} + 1")
endforeach()
file(WRITE ${SOURCE} "/* Made by cmake/web_page.cmake. */
#include \"server/page.h\"

${arrays}
const plumb_page_file plumb__page_files[] = {
${rows}};
const int plumb__page_file_count = ${number};
")

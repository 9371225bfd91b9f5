# One text of all Metal kernels, and the same text as C.
#
# Included by the project: the target plumb_metal_text makes PLUMB_METAL_TEXT, which the tests compile and
# inspect, and PLUMB_METAL_SOURCE, which defines `const char plumb__metal_source[]` for the backend.
#
#   cmake -DROOT=src -DTEXT=plumb.metal -DSOURCE=metal_source.c -P metal_source.cmake
#
# writes both.  Local includes, which name files below ROOT, are replaced by the file's text where they
# first occur and dropped after that; Metal's own stay.  Kernels come in the order of their names.
if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(PLUMB_METAL_TEXT ${PROJECT_BINARY_DIR}/src/backend/metal/plumb.metal)
  set(PLUMB_METAL_SOURCE ${PROJECT_BINARY_DIR}/src/backend/metal/metal_source.c)
  file(GLOB parts CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/arith/*.h
    ${PROJECT_SOURCE_DIR}/src/backend/metal/kernels/*.h
    ${PROJECT_SOURCE_DIR}/src/backend/metal/kernels/*.metal)
  add_custom_command(OUTPUT ${PLUMB_METAL_TEXT} ${PLUMB_METAL_SOURCE}
    COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR}/src -DTEXT=${PLUMB_METAL_TEXT}
      -DSOURCE=${PLUMB_METAL_SOURCE} -P ${CMAKE_CURRENT_LIST_FILE}
    DEPENDS ${parts} ${CMAKE_CURRENT_LIST_FILE} VERBATIM)
  add_custom_target(plumb_metal_text DEPENDS ${PLUMB_METAL_TEXT} ${PLUMB_METAL_SOURCE})
  return()
endif()
cmake_minimum_required(VERSION 3.22)
get_filename_component(ROOT ${ROOT} ABSOLUTE)

# Appends the file `name` of ROOT to `text`, unless `seen` lists it.  Both are the caller's.
function(append_file name)
  if(name IN_LIST seen)
    return()
  endif()
  list(APPEND seen ${name})
  if(NOT EXISTS ${ROOT}/${name})
    message(FATAL_ERROR "${name}: included by a Metal kernel, but not below ${ROOT}")
  endif()
  file(READ ${ROOT}/${name} rest)
  string(APPEND text "\n/* ==== ${name} ==== */\n")
  while(rest MATCHES "(^|\n)#include \"([^\"\n]+)\"[^\n]*\n")
    set(line "${CMAKE_MATCH_0}")
    set(included "${CMAKE_MATCH_2}")
    string(FIND "${rest}" "${line}" at)
    string(LENGTH "${line}" length)
    math(EXPR after "${at} + ${length} - 1") # the line's own end may begin the next match
    string(SUBSTRING "${rest}" 0 ${at} before)
    string(SUBSTRING "${rest}" ${after} -1 rest)
    string(APPEND text "${before}\n")
    append_file(${included})
  endwhile()
  string(APPEND text "${rest}")
  set(text "${text}" PARENT_SCOPE)
  set(seen ${seen} PARENT_SCOPE)
endfunction()

file(GLOB kernels RELATIVE ${ROOT} ${ROOT}/backend/metal/kernels/*.metal)
list(SORT kernels)
if(NOT kernels)
  message(FATAL_ERROR "no Metal kernels below ${ROOT}")
endif()
set(text "/* All Metal kernels of plumb and what they include: made by cmake/metal_source.cmake. */\n")
set(seen "")
foreach(kernel IN LISTS kernels)
  append_file(${kernel})
endforeach()
if(text MATCHES "[^\t\n -~]")
  message(FATAL_ERROR "a Metal kernel holds a character that is not ASCII: '${CMAKE_MATCH_0}'")
endif()
file(WRITE ${TEXT} "${text}")

# Numbers, since compilers need not take string literals of this length.
file(READ ${TEXT} bytes HEX)
string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE ${SOURCE} "/* Made by cmake/metal_source.cmake. */
extern const char plumb__metal_source[];
const char plumb__metal_source[] = {
${bytes}0};
")

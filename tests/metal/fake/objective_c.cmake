# plumb_objective_c(TARGET): what a target of Objective-C sources needs on Linux: clang, GNUstep Base, the
# runtime of GCC and the stub headers of Metal.  Sets PLUMB_HAS_GNUSTEP where they are.
#
# Include it in the folder above all that links such a target: the language must be enabled there.

set(PLUMB_HAS_GNUSTEP OFF)
find_program(PLUMB_CLANG NAMES clang clang-14 clang-15 clang-16 clang-17 clang-18 clang-19)
find_program(PLUMB_GNUSTEP_CONFIG gnustep-config)
# clang has no headers of that runtime; they lie among GCC's own.
execute_process(COMMAND gcc -print-file-name=include OUTPUT_VARIABLE PLUMB_OBJC_RUNTIME
  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(PLUMB_CLANG AND PLUMB_GNUSTEP_CONFIG AND EXISTS ${PLUMB_OBJC_RUNTIME}/objc/objc.h
    AND CMAKE_SYSTEM_NAME STREQUAL "Linux" AND NOT CMAKE_CROSSCOMPILING)
  set(PLUMB_HAS_GNUSTEP ON)
  set(CMAKE_OBJC_COMPILER ${PLUMB_CLANG})
  set(CMAKE_OBJC_STANDARD 17)
  set(CMAKE_OBJC_STANDARD_REQUIRED ON)
  set(CMAKE_OBJC_EXTENSIONS OFF)
  foreach(type RELEASE DEBUG SANITIZE)
    set(CMAKE_OBJC_FLAGS_${type} ${CMAKE_C_FLAGS_${type}})
  endforeach()
  enable_language(OBJC)
endif()

# Of what GNUstep asks for, the language and its headers, which are the system's.
function(plumb_objective_c target)
  execute_process(COMMAND ${PLUMB_GNUSTEP_CONFIG} --objc-flags OUTPUT_VARIABLE flags
    OUTPUT_STRIP_TRAILING_WHITESPACE)
  separate_arguments(flags)
  set(folders ${flags})
  list(FILTER folders INCLUDE REGEX "^-I/")
  list(TRANSFORM folders REPLACE "^-I" "")
  list(FILTER flags INCLUDE REGEX "^-(D|f(exceptions|objc|constant))")
  execute_process(COMMAND ${PLUMB_GNUSTEP_CONFIG} --base-libs OUTPUT_VARIABLE libraries
    OUTPUT_STRIP_TRAILING_WHITESPACE)
  separate_arguments(libraries)
  list(FILTER libraries INCLUDE REGEX "^-[lL]")
  list(APPEND flags -fobjc-runtime=gcc -Wno-unused-command-line-argument
    "SHELL:-idirafter ${PLUMB_OBJC_RUNTIME}")
  foreach(flag ${flags})
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:OBJC>:${flag}>)
  endforeach()
  target_include_directories(${target} SYSTEM PRIVATE ${folders})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests/metal/apple)
  target_link_libraries(${target} PUBLIC ${libraries})
endfunction()

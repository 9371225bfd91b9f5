# plumb_emulated_kernels(TARGET TEXT): a static library of the emulator and the kernels of TEXT, a .metal
# file that may be generated.  Sets PLUMB_HAS_EMULATOR where it can: that takes clang++ and python3.
# plumb_watched_kernels(TARGET TEXT): the same, but all accesses to memory are watched (races.h).
#
# Include it in the folder above all that links such a library: the language must be enabled there.

set(PLUMB_EMULATOR_FOLDER ${CMAKE_CURRENT_LIST_DIR})
find_program(PLUMB_CLANGXX NAMES clang++ clang++-14 clang++-15 clang++-16 clang++-17 clang++-18 clang++-19)
find_package(Python3 COMPONENTS Interpreter)
set(PLUMB_HAS_EMULATOR OFF)
if(NOT PLUMB_CLANGXX OR NOT Python3_FOUND)
  message(STATUS "Metal kernels are not emulated: that takes clang++ and python3")
elseif(CMAKE_CROSSCOMPILING OR NOT CMAKE_SYSTEM_NAME STREQUAL "Linux")
  message(STATUS "Metal kernels are not emulated: only on Linux, for the machine that builds")
else()
  set(PLUMB_HAS_EMULATOR ON)
  set(CMAKE_CXX_COMPILER ${PLUMB_CLANGXX})
  set(CMAKE_CXX_STANDARD 17)
  set(CMAKE_CXX_STANDARD_REQUIRED ON)
  set(CMAKE_CXX_EXTENSIONS OFF)
  set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1")
  enable_language(CXX)
endif()

# Frames and calls stay visible: the emulator tells operations apart by the calls that lead to them.
# No sanitizer instruments the emulator, since AddressSanitizer takes the stacks of fibers for overflows:
# memory is watched by guard pages, and undefined behaviour of kernels by traps, in a build with
# sanitizers all kinds of it, otherwise those that cost little.
set(PLUMB_EMULATOR_FLAGS -O2 -fno-omit-frame-pointer -fno-optimize-sibling-calls -fno-rtti
  -fno-sanitize=all -ffp-contract=off -fno-math-errno -fno-strict-aliasing -fsigned-char
  -fno-lax-vector-conversions)
if(PLUMB_HOST_HAS_AVX2_FMA)
  list(APPEND PLUMB_EMULATOR_FLAGS -mavx2 -mfma)
endif()
set(PLUMB_EMULATED_KERNEL_FLAGS ${PLUMB_EMULATOR_FLAGS} -fno-exceptions -D__METAL_VERSION__=310
  -isystem ${PLUMB_EMULATOR_FOLDER}/shim -I${PLUMB_EMULATOR_FOLDER}
  -Wall -Wextra -Wconversion -Wno-overlength-strings -Wno-unused-function
  -Werror=double-promotion -Werror=cast-qual -Werror=return-type -Werror=array-bounds)
if(PLUMB_SANITIZE)
  list(APPEND PLUMB_EMULATED_KERNEL_FLAGS -fsanitize=undefined,local-bounds -fsanitize-trap=all)
else()
  list(APPEND PLUMB_EMULATED_KERNEL_FLAGS
    -fsanitize=bounds,local-bounds,shift,float-cast-overflow,integer-divide-by-zero -fsanitize-trap=all)
endif()

function(plumb_emulated_kernels target text)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${target}.cpp)
  add_custom_command(OUTPUT ${source}
    COMMAND ${Python3_EXECUTABLE} ${PLUMB_EMULATOR_FOLDER}/make_kernels.py ${PLUMB_CLANGXX} ${text} ${source}
    DEPENDS ${text} ${PLUMB_EMULATOR_FOLDER}/make_kernels.py
    VERBATIM)
  add_library(${target} STATIC ${source})
  target_include_directories(${target} INTERFACE ${PLUMB_EMULATOR_FOLDER})
  target_compile_options(${target} PRIVATE ${PLUMB_EMULATED_KERNEL_FLAGS}
    $<$<BOOL:${PLUMB_WERROR}>:-Werror>)
  target_link_libraries(${target} PRIVATE plumb_emulator)
endfunction()

# The compiler's calls before accesses are those of ThreadSanitizer, whose own library must not be there too.
# Calls stay one per access of the text: nothing is made wider than what it watches.
function(plumb_watched_kernels target text)
  plumb_emulated_kernels(${target} ${text})
  if(NOT PLUMB_SANITIZE_THREAD)
    target_compile_options(${target} PRIVATE -fsanitize=thread -fno-vectorize -fno-slp-vectorize
      "SHELL:-mllvm -tsan-instrument-atomics=0" "SHELL:-mllvm -tsan-instrument-func-entry-exit=0")
  endif()
endfunction()

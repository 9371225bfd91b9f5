# plumb_emulated_kernels(TARGET TEXT): a static library of the emulator and the kernels of TEXT, a .metal
# file that may be generated.  Sets PLUMB_HAS_EMULATOR where it can: that takes clang++.
#
# Include it in the folder above all that links such a library: the language must be enabled there.

set(PLUMB_EMULATOR_FOLDER ${CMAKE_CURRENT_LIST_DIR})
find_program(PLUMB_CLANGXX NAMES clang++ clang++-14 clang++-15 clang++-16 clang++-17 clang++-18 clang++-19)
set(PLUMB_HAS_EMULATOR OFF)
if(NOT PLUMB_CLANGXX)
  message(STATUS "Metal kernels are not emulated: no clang++")
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
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
endif()

# Frames and calls stay visible: the emulator tells operations apart by the calls that lead to them.
# No sanitizer instruments the emulator: guard pages and traps find what a kernel does wrong, and
# AddressSanitizer would take the fibers' stacks for overflows.
set(PLUMB_EMULATOR_FLAGS -O2 -fno-omit-frame-pointer -fno-optimize-sibling-calls -fno-rtti
  -fno-sanitize=all -ffp-contract=off -fno-math-errno -fno-strict-aliasing -fsigned-char
  $<$<BOOL:${PLUMB_HOST_HAS_AVX2_FMA}>:-mavx2;-mfma>)

function(plumb_emulated_kernels target text)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${target}.cpp)
  add_custom_command(OUTPUT ${source}
    COMMAND ${Python3_EXECUTABLE} ${PLUMB_EMULATOR_FOLDER}/make_kernels.py ${PLUMB_CLANGXX} ${text} ${source}
    DEPENDS ${text} ${PLUMB_EMULATOR_FOLDER}/make_kernels.py
    VERBATIM)
  set_source_files_properties(${source} PROPERTIES
    OBJECT_DEPENDS ${text}
    COMPILE_OPTIONS "-Wall;-Wextra;-Wconversion;-Wno-overlength-strings;-Werror=double-promotion;-Werror=cast-qual;-Werror=return-type;-fno-exceptions;-D__METAL_VERSION__=310")
  add_library(${target} STATIC ${source})
  target_include_directories(${target} BEFORE PRIVATE ${PLUMB_EMULATOR_FOLDER}/shim)
  target_include_directories(${target} PUBLIC ${PLUMB_EMULATOR_FOLDER})
  target_compile_options(${target} PRIVATE ${PLUMB_EMULATOR_FLAGS})
  target_link_libraries(${target} PRIVATE plumb_emulator)
endfunction()

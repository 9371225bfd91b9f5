# Flags that every object of the project is compiled with.
add_library(plumb_flags INTERFACE)
# The arithmetic contract: no contraction, no fast maths.  -fno-math-errno and -fno-trapping-math
# (clang's default) change no value: nobody reads errno or the exception flags, and gcc may then
# turn the selects of src/arith into vector blends.
target_compile_options(plumb_flags INTERFACE
  -ffp-contract=off -fno-math-errno -fno-trapping-math -fno-strict-aliasing
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wmissing-prototypes -Wvla)
target_compile_definitions(plumb_flags INTERFACE _GNU_SOURCE _FILE_OFFSET_BITS=64)
if(APPLE) # whose struct stat has other names for POSIX's
  target_compile_definitions(plumb_flags INTERFACE st_mtim=st_mtimespec st_ctim=st_ctimespec)
endif()
if(PLUMB_WERROR)
  target_compile_options(plumb_flags INTERFACE -Werror)
endif()
if(PLUMB_SANITIZE OR PLUMB_FUZZ) # fuzzing without them would miss most faults
  target_compile_options(plumb_flags INTERFACE
    -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(plumb_flags INTERFACE -fsanitize=address,undefined)
endif()
if(PLUMB_SANITIZE_THREAD)
  target_compile_options(plumb_flags INTERFACE -fsanitize=thread -fno-omit-frame-pointer)
  target_link_options(plumb_flags INTERFACE -fsanitize=thread)
endif()
if(PLUMB_FUZZ)
  target_compile_options(plumb_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# Cross build for aarch64 Linux on Debian; programs are static and run under qemu-aarch64, so that
# CTest works as in a native build.  QEMU_CPU in the environment chooses the processor.
# scripts/aarch64-libraries build-aarch64/sysroot fetches the libraries.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_EXE_LINKER_FLAGS_INIT -static)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64)

get_filename_component(sysroot ${CMAKE_CURRENT_LIST_DIR}/../build-aarch64/sysroot ABSOLUTE)
set(CMAKE_FIND_ROOT_PATH ${sysroot})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_C_STANDARD_INCLUDE_DIRECTORIES ${sysroot}/usr/include/aarch64-linux-gnu)
# libbsd's getentropy comes before libc's and needs this, after it.
set(CMAKE_C_STANDARD_LIBRARIES ${sysroot}/usr/lib/aarch64-linux-gnu/libmd.a)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${sysroot})
set(ENV{PKG_CONFIG_LIBDIR} ${sysroot}/usr/lib/aarch64-linux-gnu/pkgconfig)
set(PKG_CONFIG_ARGN --static CACHE STRING "static libraries name those that they need")

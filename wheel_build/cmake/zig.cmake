# CMake toolchain: the compiler of the ziglang package, for glibc 2.28.
#
# DOORSTEP_ZIG in the environment names the zig executable. The wrappers keep its path out of the build files, so
# that a build folder survives the temporary environments that build front ends make.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_C_COMPILER ${CMAKE_CURRENT_LIST_DIR}/../toolchain/zig-cc)
set(CMAKE_CXX_COMPILER ${CMAKE_CURRENT_LIST_DIR}/../toolchain/zig-c++)
set(CMAKE_AR ${CMAKE_CURRENT_LIST_DIR}/../toolchain/zig-ar)
set(CMAKE_RANLIB ${CMAKE_CURRENT_LIST_DIR}/../toolchain/zig-ranlib)
set(DOORSTEP_PINNED_COMPILER ON)

# Checks of the compiler do not link: the first link compiles the C++ runtime, which takes minutes. Nor does the
# identification, by options of the environment, which nothing else takes where CMAKE_<language>_FLAGS is set.
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
foreach(language C CXX)
  set(ENV{${language}FLAGS} -c)
  set(CMAKE_${language}_FLAGS "" CACHE STRING "Options of every compilation")
endforeach()
# The library needs only glibc besides its own code.
set(CMAKE_HAVE_LIBC_PTHREAD ON)

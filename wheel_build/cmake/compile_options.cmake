# All compiler and linker flags are chosen here.
#
#   doorstep_options                interface target: options of every object of the project
#   DOORSTEP_AVX2_OPTION            additional options of the inner loops
#   DOORSTEP_AVX512_OPTION          of those that also exist for AVX-512
#   DOORSTEP_PROBE_OPTION           of all code but the models of worlds, whose callers see to their stack
#   DOORSTEP_LIBRARY_LINK_OPTIONS   additional link options of the shared library

find_package(Threads REQUIRED)
add_library(doorstep_options INTERFACE)
target_include_directories(doorstep_options INTERFACE ${CMAKE_SOURCE_DIR}/native/include ${CMAKE_SOURCE_DIR}/native/src)
target_link_libraries(doorstep_options INTERFACE Threads::Threads ${CMAKE_DL_LIBS})

target_compile_options(doorstep_options INTERFACE
  # The same bits everywhere: no fused multiply-add where the source has none, no reliance on errno or traps.
  -ffp-contract=off -fno-math-errno -fno-trapping-math
  -fno-exceptions -fno-rtti
  -Wall -Wextra
  # The library must not contain paths of the machine that builds it.
  -ffile-prefix-map=${CMAKE_SOURCE_DIR}=. -ffile-prefix-map=${CMAKE_BINARY_DIR}=build)

# Large frames touch all of their pages, in order: a thread whose stack is too small ends at the page that guards it.
set(DOORSTEP_PROBE_OPTION -fstack-clash-protection)

# Said either way: zig defines NDEBUG by itself where it optimises.
if(DOORSTEP_ASSERTS)
  target_compile_options(doorstep_options INTERFACE -UNDEBUG)
else()
  target_compile_definitions(doorstep_options INTERFACE NDEBUG)
endif()

if(DOORSTEP_PINNED_COMPILER)
  # -g0: zig adds debug information by default, and the libraries are stripped.
  target_compile_options(doorstep_options INTERFACE -Werror -g0 -fno-sanitize=all -fno-stack-protector)
  set(DOORSTEP_AVX2_OPTION -march=x86_64_v3)
  set(DOORSTEP_AVX512_OPTION -march=x86_64_v4)
  # Leave the compiler's own headers out of the dependencies: they change with its version only, and their path
  # differs from one build environment to the next.
  set(CMAKE_DEPFILE_FLAGS_CXX "-MMD -MT <DEP_TARGET> -MF <DEP_FILE>")
else()
  set(DOORSTEP_AVX2_OPTION -march=x86-64-v3)
  set(DOORSTEP_AVX512_OPTION -march=x86-64-v4)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # gcc 12 takes the undefined operand of its own intrinsics for a mistake
    list(APPEND DOORSTEP_AVX512_OPTION -Wno-uninitialized -Wno-maybe-uninitialized)
  endif()
endif()

if(DOORSTEP_SANITIZE)
  # Above -O1, or with more than line numbers, the instrumented inner loops take minutes each to compile.
  # A target may have fewer sanitizers than DOORSTEP_SANITIZE: the option comes after it.
  target_compile_options(doorstep_options INTERFACE -O1 -g1 -fno-omit-frame-pointer -fsanitize=${DOORSTEP_SANITIZE}
    $<TARGET_PROPERTY:DOORSTEP_FEWER_SANITIZERS>)
  target_link_options(doorstep_options INTERFACE -fsanitize=${DOORSTEP_SANITIZE})
  if(DOORSTEP_SANITIZE MATCHES "undefined")
    target_compile_options(doorstep_options INTERFACE -fno-sanitize-recover=undefined)
  endif()
  if(DOORSTEP_SANITIZE STREQUAL "memory")
    # Compiled code of libstdc++ links the nodes of maps, unseen by the sanitizer; in libc++ that is in the headers.
    target_compile_options(doorstep_options INTERFACE -stdlib=libc++)
    target_link_options(doorstep_options INTERFACE -stdlib=libc++)
  endif()
  # The sanitizers' own symbols are resolved when the program starts.
  set(DOORSTEP_LIBRARY_LINK_OPTIONS "")
else()
  set(DOORSTEP_LIBRARY_LINK_OPTIONS -Wl,--no-undefined -s)
  if(DOORSTEP_PINNED_COMPILER)
    list(APPEND DOORSTEP_LIBRARY_LINK_OPTIONS -nostdlib++)  # see native/src/runtime/cpp_runtime.cpp
  endif()
endif()

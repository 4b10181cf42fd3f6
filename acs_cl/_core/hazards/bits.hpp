// Operations that C++17 lacks. Each compiler has its own, and they are only here.

#pragma once

#include <cstddef>
#include <cstdint>

#ifdef _MSC_VER
#include <__msvc_int128.hpp>
#include <intrin.h>
#endif

// Compiled twice: for the registers that every x86 has, and for wide ones if the machine has them. What chooses runs
// before a sanitizer or a counter of branches can.
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__) && !defined(ACS_CL_COUNTS)
#define ACS_CL_WIDE __attribute__((target_clones("avx2", "default")))
#else
#define ACS_CL_WIDE
#endif

// For functions that are seldom called and should not make their callers longer.
#if defined(_MSC_VER) && !defined(__clang__)
#define ACS_CL_SELDOM __declspec(noinline)
#else
#define ACS_CL_SELDOM __attribute__((noinline, cold))
#endif

namespace acs_cl {

// A signed whole number of 128 bits.
#ifdef _MSC_VER
using Wide = std::_Signed128;
#else
__extension__ typedef __int128 Wide;
#endif

// The place of the lowest bit that is set, from 0. At least one has to be set.
inline int lowest_bit(std::uint64_t bits) {
#ifdef _MSC_VER
    unsigned long place;
    _BitScanForward64(&place, bits);
    return int(place);
#else
    return __builtin_ctzll(bits);
#endif
}

// Fetches memory that will be read soon. Any address is allowed.
inline void prefetch(const void *address) {
#if !defined(_MSC_VER)
    __builtin_prefetch(address);
#elif defined(_M_ARM64)
    __prefetch(address);
#else
    _mm_prefetch(static_cast<const char *>(address), _MM_HINT_T0);
#endif
}

// Fetches memory that will be written soon.
inline void prefetch_to_write(const void *address) {
#ifdef _MSC_VER
    prefetch(address);
#else
    __builtin_prefetch(address, 1);
#endif
}

// Fetches all of an object that will be read soon. There need not be one.
template <typename What>
inline void prefetch_all(const What *what) {
    constexpr std::size_t LINE = 64;
    for (std::size_t at = 0; at < sizeof(What); at += LINE) prefetch(reinterpret_cast<const char *>(what) + at);
}

}  // namespace acs_cl

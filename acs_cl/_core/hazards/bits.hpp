// What C++17 has no word for. Each compiler has one of its own, and they are here only.

#pragma once

#include <cstdint>

#ifdef _MSC_VER
#include <__msvc_int128.hpp>
#include <intrin.h>
#endif

// Compiled twice: for the registers that every x86 has, and for wide ones where the machine has them.
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__SANITIZE_ADDRESS__)
#define ACS_CL_WIDE __attribute__((target_clones("avx2", "default")))
#else
#define ACS_CL_WIDE
#endif

// What is seldom called, and should not make its callers longer.
#if defined(_MSC_VER) && !defined(__clang__)
#define ACS_CL_SELDOM __declspec(noinline)
#else
#define ACS_CL_SELDOM __attribute__((noinline, cold))
#endif

namespace acs_cl {

// A whole number of 128 bits, with a sign.
#ifdef _MSC_VER
using Wide = std::_Signed128;
#else
__extension__ typedef __int128 Wide;
#endif

// The place of the lowest bit that is set, from 0. One is.
inline int lowest_bit(std::uint64_t bits) {
#ifdef _MSC_VER
    unsigned long place;
    _BitScanForward64(&place, bits);
    return int(place);
#else
    return __builtin_ctzll(bits);
#endif
}

// Ask memory for what will be read soon. Any address will do.
inline void prefetch(const void *address) {
#if !defined(_MSC_VER)
    __builtin_prefetch(address);
#elif defined(_M_ARM64)
    __prefetch(address);
#else
    _mm_prefetch(static_cast<const char *>(address), _MM_HINT_T0);
#endif
}

// The same for what will be written.
inline void prefetch_to_write(const void *address) {
#ifdef _MSC_VER
    prefetch(address);
#else
    __builtin_prefetch(address, 1);
#endif
}

}  // namespace acs_cl

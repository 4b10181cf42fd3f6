/* Device-wide order and atomics, for the tiers that a device may offer.

   ACS_TIER_C11   atomics and fences of OpenCL C 2.0 and later at device scope
   ACS_TIER_PTX   the same orders in the hardware's own instructions, on NVIDIA, whose OpenCL declares
                  no device scope: outside the letter of OpenCL, inside that of PTX 6.0

   Names say the order: none is relaxed. A group barrier before a release, or after an acquire, makes
   it hold for the whole group, because both models let order pass through barriers. */

#if defined(ACS_TIER_C11)
typedef volatile __global atomic_uint *acs_word;
#define ACS_AT(p) ((acs_word)(p))
#define acs_fence() atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE, memory_order_acq_rel, memory_scope_device)
#define acs_load(p) atomic_load_explicit(ACS_AT(p), memory_order_relaxed, memory_scope_device)
#define acs_load_acquire(p) atomic_load_explicit(ACS_AT(p), memory_order_acquire, memory_scope_device)
#define acs_store(p, v) atomic_store_explicit(ACS_AT(p), (v), memory_order_relaxed, memory_scope_device)
#define acs_add(p, v) atomic_fetch_add_explicit(ACS_AT(p), (v), memory_order_relaxed, memory_scope_device)
#define acs_sub_release_acquire(p, v)                                                              \
    atomic_fetch_sub_explicit(ACS_AT(p), (v), memory_order_acq_rel, memory_scope_device)
#define acs_or_acquire(p, v) atomic_fetch_or_explicit(ACS_AT(p), (v), memory_order_acquire, memory_scope_device)
#define acs_exchange(p, v)                                                                         \
    atomic_exchange_explicit(ACS_AT(p), (v), memory_order_relaxed, memory_scope_device)
/* returns the old value; the new one is stored only if that equals `expected` */
inline uint acs_swap_if_acquire(volatile __global uint *p, uint expected, uint desired) {
    atomic_compare_exchange_strong_explicit(ACS_AT(p), &expected, desired, memory_order_acquire,
                                            memory_order_acquire, memory_scope_device);
    return expected;
}
#elif defined(ACS_TIER_PTX)
#define ACS_ATOM(name, text)                                                                       \
    inline uint name(volatile __global uint *p, uint v) {                                          \
        uint before;                                                                               \
        asm volatile(text " %0, [%1], %2;" : "=r"(before) : "l"((ulong)p), "r"(v) : "memory");     \
        return before;                                                                             \
    }
#define acs_fence() asm volatile("fence.acq_rel.gpu;" ::: "memory")
inline uint acs_load(volatile __global uint *p) {
    uint v;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"((ulong)p) : "memory");
    return v;
}
inline uint acs_load_acquire(volatile __global uint *p) {
    uint v;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"((ulong)p) : "memory");
    return v;
}
inline void acs_store(volatile __global uint *p, uint v) {
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" :: "l"((ulong)p), "r"(v) : "memory");
}
ACS_ATOM(acs_add, "atom.relaxed.gpu.global.add.u32")
ACS_ATOM(acs_add_release_acquire, "atom.acq_rel.gpu.global.add.u32")
ACS_ATOM(acs_or_acquire, "atom.acquire.gpu.global.or.b32")
ACS_ATOM(acs_exchange, "atom.relaxed.gpu.global.exch.b32")
#define acs_sub_release_acquire(p, v) acs_add_release_acquire((p), 0u - (v))
inline uint acs_swap_if_acquire(volatile __global uint *p, uint expected, uint desired) {
    uint before;
    asm volatile("atom.acquire.gpu.global.cas.b32 %0, [%1], %2, %3;"
                 : "=r"(before) : "l"((ulong)p), "r"(expected), "r"(desired) : "memory");
    return before;
}
#endif

#define ACS_REST_NS 128u
#define ACS_LONG_REST_NS 1000u
#define ACS_RESTLESS 4096u
#define ACS_REST_TURNS 64u

/* Nanoseconds that pass at the same rate for all groups, or 0 if there is no such clock. */
inline ulong acs_clock_ns(void) {
#if defined(ACS_TIER_PTX)
    ulong now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
#else
    return 0;
#endif
}

/* Ticks of a clock of the group, for differences. Without ACS_TICKS there is none. */
#if defined(ACS_TIER_PTX)
#define ACS_TICKS 1
inline uint acs_ticks(void) {
    uint now;
    asm volatile("mov.u32 %0, %%clock;" : "=r"(now) :: "memory");
    return now;
}
#else
#if defined(__has_builtin)
#if __has_builtin(__builtin_readcyclecounter)
#define ACS_TICKS 1
inline uint acs_ticks(void) { return (uint)__builtin_readcyclecounter(); }
#endif
#endif
#ifndef ACS_TICKS
#define ACS_TICKS 0
inline uint acs_ticks(void) { return 0; }
#endif
#endif

/* Time for a timed scheduler, by a clock that all groups share. Without one, it counts how often the
   time was asked. ACS_NOW says which: nanoseconds, ticks of some length, or an order. */
#if ACS_TIMED
#if defined(__opencl_c_kernel_clock_scope_device)
#pragma OPENCL EXTENSION cl_khr_kernel_clock : enable
#endif
#if defined(ACS_TIER_PTX)
#define ACS_NOW 1u
#elif defined(__opencl_c_kernel_clock_scope_device) || ACS_TICKS
#define ACS_NOW 2u
#else
#define ACS_NOW 3u
#endif
inline ulong acs_now(volatile __global uint *order) {
#if defined(ACS_TIER_PTX)
    ulong now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now) :: "memory");
    return now;
#elif defined(__opencl_c_kernel_clock_scope_device)
    return clock_read_device();
#elif ACS_TICKS
    return __builtin_readcyclecounter();
#else
    return acs_add(order, 1u);
#endif
}
#endif

/* Rest between polls for something that does not come, longer each time. At first it is a fraction of
   the shortest task's time, so that a ready task does not wait for a group that rests. After some
   milliseconds it is so long that waiting groups take nothing from others. */
inline void acs_rest(uint looks) {
#if defined(ACS_TIER_PTX)
    const uint ns = looks < ACS_RESTLESS ? min(looks * 4u, ACS_REST_NS) : ACS_LONG_REST_NS;
    asm volatile("nanosleep.u32 %0;" :: "r"(ns));
#else
    for (volatile uint turn = min(looks, ACS_REST_TURNS); turn; --turn)
        ;
#endif
}

/* One work-item needs no barrier, and some compilers are better without. */
#if ACS_GROUP == 1
#define acs_group_barrier()
#else
#define acs_group_barrier() barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
#endif

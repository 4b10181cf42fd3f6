/* Device-wide order and atomics, for the tiers a device may offer.

   ACS_TIER_C11   relaxed atomics and fences of OpenCL C 2.0 and later at device scope
   ACS_TIER_PTX   relaxed atomics of OpenCL C 1.2 and the hardware's own fence, on NVIDIA: its OpenCL
                  declares no device scope, so this is outside the letter of OpenCL
   ACS_TIER_LEVELS neither: only levels.cl is built, which needs no order inside a launch

   All atomics are relaxed; order comes from acs_fence() alone, which both releases and acquires:
   what a work-item wrote, or saw before, is there for whoever reads after a fence of its own a word
   that this work-item wrote after the fence. A group barrier before the fence makes it speak for
   the whole group. */

#if defined(ACS_TIER_C11)
typedef volatile __global atomic_uint *acs_word;
#define acs_fence() atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE, memory_order_acq_rel, memory_scope_device)
#define acs_load(p) atomic_load_explicit((acs_word)(p), memory_order_relaxed, memory_scope_device)
#define acs_store(p, v) atomic_store_explicit((acs_word)(p), (v), memory_order_relaxed, memory_scope_device)
#define acs_add(p, v) atomic_fetch_add_explicit((acs_word)(p), (v), memory_order_relaxed, memory_scope_device)
#define acs_sub(p, v) atomic_fetch_sub_explicit((acs_word)(p), (v), memory_order_relaxed, memory_scope_device)
#define acs_or(p, v) atomic_fetch_or_explicit((acs_word)(p), (v), memory_order_relaxed, memory_scope_device)
#define acs_exchange(p, v) atomic_exchange_explicit((acs_word)(p), (v), memory_order_relaxed, memory_scope_device)
/* what was there; the new value is stored only where that equals `expected` */
inline uint acs_swap_if(volatile __global uint *p, uint expected, uint desired) {
    atomic_compare_exchange_strong_explicit((acs_word)p, &expected, desired, memory_order_relaxed,
                                            memory_order_relaxed, memory_scope_device);
    return expected;
}
#elif defined(ACS_TIER_PTX)
#define acs_fence() asm volatile("fence.acq_rel.gpu;" ::: "memory")
#define acs_load(p) (*(volatile __global uint *)(p))
#define acs_store(p, v) (*(volatile __global uint *)(p) = (v))
#define acs_add(p, v) atomic_add((volatile __global uint *)(p), (v))
#define acs_sub(p, v) atomic_sub((volatile __global uint *)(p), (v))
#define acs_or(p, v) atomic_or((volatile __global uint *)(p), (v))
#define acs_exchange(p, v) atomic_xchg((volatile __global uint *)(p), (v))
#define acs_swap_if(p, expected, desired) atomic_cmpxchg((volatile __global uint *)(p), (expected), (desired))
#endif

/* Nanoseconds that pass at the same rate for everyone, or 0 where there is no such clock. */
inline ulong acs_clock_ns(void) {
#if defined(ACS_TIER_PTX)
    ulong now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
#else
    return 0;
#endif
}

/* One work-item needs no barrier, and some compilers are better off without. */
#if ACS_GROUP == 1
#define acs_group_barrier()
#else
#define acs_group_barrier() barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
#endif

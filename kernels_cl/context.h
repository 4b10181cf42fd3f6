/* The position of a work-item, for kernels that are called as functions.

   The real built-ins would describe the scheduler's own launch. So a translated kernel asks an
   acs_context that its caller fills: for every dimension below work_dim as OpenCL says, for the rest
   sizes of 1 and ids of 0. Sizes in dimensions that do not exist are what the driver says: 1 by
   OpenCL, but 0 in PoCL, and a kernel has to behave as it does without a scheduler.

   ACS_CONTEXT, ACS_PASS: how a context is declared as a parameter and passed on.
   ACS_LISTED: children of a tile that wait for its end.
   ACS_BLOB: the address space that arguments are read from. Blobs start at multiples of 16 bytes,
   the arena of local memory at multiples of 128. */

typedef struct {
    uint global_id[3], local_id[3], group_id[3];
    uint global_size[3], local_size[3], num_groups[3];
    uint global_offset[3];
    uint work_dim;
#if ACS_SPAWNS
    __global uint *list;       /* what the items of a tile spawn, for the group to see to */
    volatile __local uint *listed; /* how many, then ACS_LISTED words and ACS_LISTED more: see below */
    const __global uint *learned; /* of each body, or 0: */
    uint least;                /* items of a child that is listed */
#endif
} acs_context;

#ifndef ACS_CONTEXT
#define ACS_CONTEXT const acs_context *acs_ctx
#define ACS_PASS acs_ctx
#endif
#ifndef ACS_BLOB
#define ACS_BLOB __local
#endif

/* By comparison, not by index: a dimension that is known only at run time must not force the context
   out of registers. */
#define ACS_DIMENSION(field, d, beyond)                                                            \
    ((d) == 0 ? acs_ctx->field[0] : (d) == 1 ? acs_ctx->field[1] : (d) == 2 ? acs_ctx->field[2] : (beyond))

static inline size_t acs_get_global_id(ACS_CONTEXT, uint d) { return ACS_DIMENSION(global_id, d, 0u); }
static inline size_t acs_get_local_id(ACS_CONTEXT, uint d) { return ACS_DIMENSION(local_id, d, 0u); }
static inline size_t acs_get_group_id(ACS_CONTEXT, uint d) { return ACS_DIMENSION(group_id, d, 0u); }
static inline size_t acs_get_global_size(ACS_CONTEXT, uint d) { return ACS_DIMENSION(global_size, d, get_global_size(d)); }
static inline size_t acs_get_local_size(ACS_CONTEXT, uint d) { return ACS_DIMENSION(local_size, d, get_local_size(d)); }
static inline size_t acs_get_enqueued_local_size(ACS_CONTEXT, uint d) { return ACS_DIMENSION(local_size, d, get_local_size(d)); }
static inline size_t acs_get_num_groups(ACS_CONTEXT, uint d) { return ACS_DIMENSION(num_groups, d, get_num_groups(d)); }
static inline size_t acs_get_global_offset(ACS_CONTEXT, uint d) { return ACS_DIMENSION(global_offset, d, 0u); }
static inline uint acs_get_work_dim(ACS_CONTEXT) { return acs_ctx->work_dim; }

static inline size_t acs_get_global_linear_id(ACS_CONTEXT) {
    const size_t row = (size_t)(acs_ctx->global_id[2] - acs_ctx->global_offset[2]) * acs_ctx->global_size[1] +
                       (acs_ctx->global_id[1] - acs_ctx->global_offset[1]);
    return row * acs_ctx->global_size[0] + (acs_ctx->global_id[0] - acs_ctx->global_offset[0]);
}

static inline size_t acs_get_local_linear_id(ACS_CONTEXT) {
    const size_t row = (size_t)acs_ctx->local_id[2] * acs_ctx->local_size[1] + acs_ctx->local_id[1];
    return row * acs_ctx->local_size[0] + acs_ctx->local_id[0];
}

#if ACS_SPAWNS
/* Children are kept in units. A record is one, and so are the arguments for some of its items. */
#define ACS_UNIT 16u           /* words */
#define ACS_L_ITEMS 1u         /* behind their number: the items of each, 0: seen to */
#define ACS_L_BODY (1u + ACS_LISTED)
#define ACS_LIST_WORDS (1u + 2u * ACS_LISTED)
#define ACS_C_BEGIN 0          /* the first item that has these arguments, of all in the list or record */
#define ACS_C_END 1            /* and the one behind the last */
#define ACS_C_ARGS 4

/* Nothing is known of a function before its items were listed once, so few of them are, too. */
static uint acs_least(const __global uint *learned, uint body) {
    const __global uint *row = learned + body * ACS_T_WORDS;
    return row[ACS_T_LEAST] ? row[ACS_T_LEAST] : ACS_TICKS && row[ACS_T_PASS] == 0u ? 1u : ACS_LEAST;
}

/* Return where the arguments of `n` items go, or 0: the caller runs them now. */
static __global uchar *acs_offer(ACS_CONTEXT, uint body, uint n) {
    const uint least = acs_ctx->learned ? acs_least(acs_ctx->learned, body) : acs_ctx->least;
    if (n < least || n > 0x7FFFFFFFu || *acs_ctx->listed >= ACS_LISTED)
        return 0;
    const uint place = atomic_inc(acs_ctx->listed);
    if (place >= ACS_LISTED)
        return 0;
    __global uint *entry = acs_ctx->list + place * ACS_UNIT;
    acs_ctx->listed[ACS_L_ITEMS + place] = n;
    acs_ctx->listed[ACS_L_BODY + place] = body;
    return (__global uchar *)(entry + ACS_C_ARGS);
}
#endif

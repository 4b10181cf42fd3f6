/* One tile of a task: sizes, decisions, and the call of the body.

   The generated switch calls ACS_TILED for bodies whose items may be cut anywhere. It calls
   ACS_GROUPED for bodies that need their own groups (barriers, local memory). There a group of the
   kernel is a group of the scheduler. */

typedef struct {
    uint first, end;           /* items of this tile */
    uint items;                /* of the launch, after decisions */
    uint local_items;
    const __global uint *shape; /* 0: one dimension */
    uint counted;              /* the first dimension as read on the device, plus one, or 0 */
    uint groups_x, groups_y;   /* where there is a shape: groups of its first two dimensions */
#if ACS_SPAWNS
    const __global uint *entries; /* of a child */
    uint n_entries;
#endif
} acs_tile;

/* Groups always have ACS_GROUP items. NVIDIA's compiler (driver 580) is not told so: told, it spills to
   get as many groups resident as it can. */
#if defined(ACS_TIER_PTX)
#define ACS_GROUP_ATTRIBUTE
#else
#define ACS_GROUP_ATTRIBUTE __attribute__((reqd_work_group_size(ACS_GROUP, 1, 1)))
#endif

/* The launch's sizes for the context. They are the same for all items. */
inline void acs_sizes(acs_context *c, acs_tile *t) {
    if (!t->shape) {
        c->work_dim = 1;
        c->global_size[0] = t->items;
        c->local_size[0] = t->local_items;
        c->num_groups[0] = t->local_items == 1 ? t->items : (t->items + t->local_items - 1) / t->local_items;
        c->global_offset[0] = 0;
        for (uint d = 1; d < 3; ++d) {
            c->global_size[d] = 1;
            c->local_size[d] = 1;
            c->num_groups[d] = 1;
            c->global_offset[d] = 0;
            c->global_id[d] = 0;
            c->local_id[d] = 0;
            c->group_id[d] = 0;
        }
        return;
    }
    c->work_dim = t->shape[ACS_S_DIMENSIONS];
    for (uint d = 0; d < 3; ++d) {
        c->global_size[d] = d == 0 && t->counted != ACS_NONE ? t->counted - 1u : t->shape[ACS_S_GLOBAL + d];
        c->local_size[d] = max(t->shape[ACS_S_LOCAL + d], 1u);
        c->num_groups[d] = c->global_size[d] / c->local_size[d];
        c->global_offset[d] = t->shape[ACS_S_OFFSET + d];
    }
    t->groups_x = max(c->num_groups[0], 1u);
    t->groups_y = max(c->num_groups[1], 1u);
}

/* On a CPU one work-item runs a whole tile in a loop, which is vectorised. For that the compiler (PoCL 3.0)
   must not keep the context in memory, so nothing gets its address but what is inlined. */
#if ACS_GROUP == 1
#define ACS_INLINE static inline __attribute__((always_inline))
#else
#define ACS_INLINE inline
#endif

/* The context of one item of one dimension. */
ACS_INLINE void acs_place_in_row(acs_context *c, uint local_items, uint item) {
    const uint group = local_items == 1 ? item : item / local_items;
    c->group_id[0] = group;
    c->local_id[0] = item - group * local_items;
    c->global_id[0] = item;
}

/* The ids in the launch that belong to those in groups. */
ACS_INLINE void acs_set_global_ids(acs_context *c) {
    c->global_id[0] = c->group_id[0] * c->local_size[0] + c->local_id[0] + c->global_offset[0];
    c->global_id[1] = c->group_id[1] * c->local_size[1] + c->local_id[1] + c->global_offset[1];
    c->global_id[2] = c->group_id[2] * c->local_size[2] + c->local_id[2] + c->global_offset[2];
}

/* The context of local item `local_item` of group `group`, both counted through all dimensions. */
ACS_INLINE void acs_place_in_shape(acs_context *c, const acs_tile *t, uint group, uint local_item) {
    c->group_id[0] = group % t->groups_x;
    group /= t->groups_x;
    c->group_id[1] = group % t->groups_y;
    c->group_id[2] = group / t->groups_y;
    c->local_id[0] = local_item % c->local_size[0];
    local_item /= c->local_size[0];
    c->local_id[1] = local_item % c->local_size[1];
    c->local_id[2] = local_item / c->local_size[1];
    acs_set_global_ids(c);
}

#if ACS_GROUP == 1
/* Go on to the first item of the next run: through the group, then to the next group. */
ACS_INLINE void acs_next_run(acs_context *c, const acs_tile *t) {
    c->local_id[0] = 0;
    ++c->local_id[1];
    if (c->local_id[1] == c->local_size[1]) {
        c->local_id[1] = 0;
        ++c->local_id[2];
    }
    if (c->local_id[2] == c->local_size[2]) {
        c->local_id[2] = 0;
        ++c->group_id[0];
    }
    if (c->group_id[0] == t->groups_x) {
        c->group_id[0] = 0;
        ++c->group_id[1];
    }
    if (c->group_id[1] == t->groups_y) {
        c->group_id[1] = 0;
        ++c->group_id[2];
    }
    acs_set_global_ids(c);
}

#define ACS_VECTORISED _Pragma("clang loop vectorize(assume_safety) interleave(assume_safety)")

/* The items of a kernel are independent of each other. Each has a context of its own, or the compiler sees
   one that goes from item to item. Items whose ids differ in the first dimension alone are a run: those of
   a row of a group or, where groups have one item, of a row of groups. */
#define ACS_TILED(function)                                                                        \
    {                                                                                              \
        const uint local_items = tile->local_items, end = tile->end;                               \
        uint item = tile->first;                                                                   \
        acs_context run = context;                                                                 \
        if (!tile->shape) {                                                                        \
            ACS_VECTORISED                                                                         \
            for (; item < end; ++item) {                                                           \
                acs_context own = run;                                                             \
                acs_place_in_row(&own, local_items, item);                                         \
                function(&own, blob, arena);                                                       \
            }                                                                                      \
        } else if (item < end) {                                                                   \
            acs_place_in_shape(&run, tile, item / local_items, item % local_items);                \
            while (item < end) {                                                                   \
                const bool is_row = local_items == 1;                                              \
                const uint from = is_row ? run.group_id[0] : run.local_id[0];                      \
                const uint many = (is_row ? tile->groups_x : run.local_size[0]) - from;            \
                const uint behind = from + (many < end - item ? many : end - item);                \
                const uint base = run.global_id[0] - from;                                         \
                ACS_VECTORISED                                                                     \
                for (uint x = from; x < behind; ++x) {                                             \
                    acs_context own = run;                                                         \
                    own.global_id[0] = base + x;                                                   \
                    own.group_id[0] = is_row ? x : run.group_id[0];                                \
                    own.local_id[0] = is_row ? 0 : x;                                              \
                    function(&own, blob, arena);                                                   \
                }                                                                                  \
                item += behind - from;                                                             \
                if (is_row)                                                                        \
                    run.group_id[0] = behind - 1u;                                                 \
                acs_next_run(&run, tile);                                                          \
            }                                                                                      \
        }                                                                                          \
    }
#else
#define ACS_TILED(function)                                                                        \
    for (uint item = tile->first + lane; item < tile->end; item += ACS_GROUP) {                    \
        if (!tile->shape)                                                                          \
            acs_place_in_row(&context, tile->local_items, item);                                   \
        else                                                                                       \
            acs_place_in_shape(&context, tile, item / tile->local_items, item % tile->local_items); \
        function(&context, blob, arena);                                                           \
    }
#endif

#define ACS_GROUPED(function)                                                                      \
    for (uint first = tile->first; first < tile->end; first += ACS_GROUP) {                        \
        if (!tile->shape)                                                                          \
            acs_place_in_row(&context, tile->local_items, first + lane);                           \
        else                                                                                       \
            acs_place_in_shape(&context, tile, first / ACS_GROUP, lane);                           \
        function(&context, blob, arena);                                                           \
        acs_group_barrier();                                                                       \
    }

#if ACS_SPAWNS
/* Return the entry of a child that an item belongs to. */
inline const __global uint *acs_entry_of(const acs_tile *t, uint item) {
    uint low = 0, high = t->n_entries - 1u;
    while (low < high) {
        const uint middle = (low + high) >> 1;
        if (item < t->entries[middle * ACS_UNIT + ACS_C_END])
            high = middle;
        else
            low = middle + 1u;
    }
    return t->entries + low * ACS_UNIT;
}

/* For functions whose items are spawned, from entry to entry. The called function runs every item of an
   entry that is this lane's. */
#define ACS_CHILD(function)                                                                        \
    for (uint item = tile->first + lane; item < tile->end;) {                                      \
        const __global uint *entry = acs_entry_of(tile, item);                                     \
        const uint begin = entry[ACS_C_BEGIN], end = min(entry[ACS_C_END], tile->end);             \
        function(&context, (const __global uchar *)(entry + ACS_C_ARGS), item - begin, end - begin, ACS_GROUP); \
        item += ((end - item - 1u) / ACS_GROUP + 1u) * ACS_GROUP;                                  \
    }
#endif

/* The words of a record that every turn needs, in registers. Wide reads, one after another, cost less
   than a narrow read wherever one is needed. */
typedef struct {
    uint body, heir, successors, n_successors, tiles, first_tile, items, tile_items, args, shape, local_items;
} acs_record;

inline acs_record acs_read(ACS_RECORD const uint *stored) {
    const uint4 a = ((ACS_RECORD const uint4 *)stored)[0];
    const uint4 b = ((ACS_RECORD const uint4 *)stored)[1];
    const uint2 c = ((ACS_RECORD const uint2 *)stored)[4];
    const acs_record r = {a.x, a.y, a.z, a.w, acs_tiles_of(b.x), acs_first_tile_of(b.x), b.y, b.z, b.w, c.x, c.y};
    return r;
}

#if ACS_SPAWNS
/* Read the same of a record where it is stored. */
inline acs_record acs_read_stored(const __global uint *stored) {
    const acs_record r = {stored[ACS_R_BODY], stored[ACS_R_HEIR], stored[ACS_R_SUCCESSORS],
                          stored[ACS_R_N_SUCCESSORS], acs_tiles_of(stored[ACS_R_TILES]),
                          acs_first_tile_of(stored[ACS_R_TILES]), stored[ACS_R_ITEMS],
                          stored[ACS_R_TILE_ITEMS], stored[ACS_R_ARGS], stored[ACS_R_SHAPE],
                          stored[ACS_R_LOCAL]};
    return r;
}
#endif

/* Whether a task has such a tile, and all tiles that its items make, or, for a band, a part of them. A
   band of no items has one tile, which runs nothing. */
inline bool acs_has_tile(const acs_record *r, uint tile) {
    const uint behind = r->first_tile + r->tiles;
    const bool fits = (r->body & ACS_F_BAND) ? (behind - 1u) * r->tile_items < max(r->items, 1u)
                                             : behind * r->tile_items - r->items < r->tile_items;
    return (tile < r->tiles) & fits;
}

/* Whether a task of one tile differs from another at most in its arguments, all of them in the record,
   and in its heir. */
inline bool acs_is_like(const acs_record *r, const acs_record *other) {
    const uint body = 0xFFu | ACS_F_PLAIN | ACS_F_SPAWNS | ACS_F_BAND;
    return ((r->body & ACS_F_PLAIN) != 0u) &
           ((((r->body ^ other->body) & body) | (r->tiles ^ other->tiles) | (r->first_tile ^ other->first_tile) |
             (r->items ^ other->items) | (r->tile_items ^ other->tile_items) |
             (r->local_items ^ other->local_items) | r->args | r->n_successors) == 0u);
}

/* Whether the places that a record names are inside a region of `all` words and `edges` successors. */
inline bool acs_is_sane(uint all, uint edges, const acs_record *r) {
    const uint words = r->body >> 16;
    return r->n_successors <= edges && r->successors <= edges - r->n_successors &&
           words <= ACS_ARGS_WORDS && r->args <= all && words <= all - r->args;
}

/* Find the items of a tile, decisions included. Returns a fault, or 0; then `end` says what to run. */
inline uint acs_decide(acs_tile *t, const acs_record *r, ACS_RECORD const uint *stored,
                       __global uint *region, uint tile) {
    t->shape = 0;
    t->groups_x = t->groups_y = 1;
    t->items = r->items;
    t->local_items = max(r->local_items, 1u);
    t->counted = ACS_NONE;
    t->first = (r->first_tile + tile) * r->tile_items;
    t->end = min(t->first + r->tile_items, t->items);
    if (r->body & ACS_F_PLAIN)
        return 0;
    const uint spread = r->body & ACS_F_BAND ? stored[ACS_R_SPREAD] : 0u, run = spread & 0xFFFFu;
    if (run) { /* such a band is not plain: in the way of all others this would make each task slower */
        t->first = (r->first_tile + tile / run * (spread >> 16) + tile % run) * r->tile_items;
        t->end = min(t->first + r->tile_items, t->items);
    }
    const uint end = t->end;
    const ulong when = *(ACS_RECORD const ulong *)(stored + ACS_R_WHEN);
    const ulong count = *(ACS_RECORD const ulong *)(stored + ACS_R_COUNT);
    t->end = 0;
    if (r->shape > region[ACS_H_WORDS] - 10u)
        return ACS_BAD_RECORD;
    if (r->shape)
        t->shape = region + r->shape;
    if (when && *(__global uint *)when == 0)
        return 0;
    if (count) {
        const uint n = *(__global uint *)count;
        t->counted = n + 1u;
        if (n > stored[ACS_R_UPTO])
            return ACS_ABOVE_UPTO;
        if (n % max(t->shape ? t->shape[ACS_S_LOCAL] : t->local_items, 1u))
            return ACS_NOT_WHOLE_GROUPS;
        t->items = t->shape ? n * t->shape[ACS_S_GLOBAL + 1] * t->shape[ACS_S_GLOBAL + 2] : n;
    }
    t->end = min(end, t->items);
    return 0;
}

/* What one tile of a task does: sizes, decisions, and the call of the body.

   The generated switch calls ACS_TILED for bodies whose items may be cut anywhere, ACS_GROUPED for
   bodies that need their own groups (barriers, local memory): there a group of the kernel is a group
   of the scheduler. */

typedef struct {
    uint first, end;           /* items of this tile */
    uint items;                /* of the launch, after decisions */
    uint local_items;
    const __global uint *shape; /* 0: one dimension */
    uint counted;              /* the first dimension was read on the device */
} acs_tile;

/* The launch's sizes for the context; they are the same for all items. */
inline void acs_sizes(acs_context *c, const acs_tile *t) {
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
        c->local_size[d] = t->shape[ACS_S_LOCAL + d];
        c->num_groups[d] = c->global_size[d] / max(c->local_size[d], 1u);
        c->global_offset[d] = t->shape[ACS_S_OFFSET + d];
    }
}

/* The context of local item `local_item` of group `group`, both counted through all dimensions. */
inline void acs_place(acs_context *c, const acs_tile *t, uint group, uint local_item) {
    if (!t->shape) {
        c->group_id[0] = group;
        c->local_id[0] = local_item;
        c->global_id[0] = group * t->local_items + local_item;
        return;
    }
    for (uint d = 0; d < 3; ++d) {
        c->group_id[d] = group % c->num_groups[d];
        group /= c->num_groups[d];
        c->local_id[d] = local_item % c->local_size[d];
        local_item /= c->local_size[d];
        c->global_id[d] = c->group_id[d] * c->local_size[d] + c->local_id[d] + c->global_offset[d];
    }
}

#define ACS_TILED(function)                                                                        \
    for (uint item = tile->first + lane; item < tile->end; item += ACS_GROUP) {                    \
        const uint group = tile->local_items == 1 ? item : item / tile->local_items;               \
        acs_place(&context, tile, group, item - group * tile->local_items);                        \
        function(&context, blob, arena);                                                           \
    }

#define ACS_GROUPED(function)                                                                      \
    for (uint first = tile->first; first < tile->end; first += ACS_GROUP) {                        \
        acs_place(&context, tile, first / ACS_GROUP, lane);                                        \
        function(&context, blob, arena);                                                           \
        acs_group_barrier();                                                                       \
    }

inline ulong acs_address(ACS_RECORD const uint *record, uint word) {
    return (ulong)record[word] | (ulong)record[word + 1] << 32;
}

/* The items of a tile, decisions included. Returns a fault, or 0; then nothing may be run. */
inline uint acs_decide(acs_tile *t, ACS_RECORD const uint *record, __global uint *region, uint tile) {
    const ulong when = acs_address(record, ACS_R_WHEN);
    const ulong count = acs_address(record, ACS_R_COUNT);
    t->shape = record[ACS_R_SHAPE] ? region + record[ACS_R_SHAPE] : (const __global uint *)0;
    t->items = record[ACS_R_ITEMS];
    t->local_items = record[ACS_R_LOCAL];
    t->counted = ACS_NONE;
    t->first = tile * record[ACS_R_TILE_ITEMS];
    t->end = 0;
    if (when && *(__global uint *)when == 0)
        return 0;
    if (count) {
        const uint n = *(__global uint *)count;
        if (n > record[ACS_R_UPTO])
            return ACS_ABOVE_UPTO;
        if (t->shape) {
            if (n % t->shape[ACS_S_LOCAL])
                return ACS_NOT_WHOLE_GROUPS;
            t->items = n * t->shape[ACS_S_GLOBAL + 1] * t->shape[ACS_S_GLOBAL + 2];
        } else {
            if (n % t->local_items)
                return ACS_NOT_WHOLE_GROUPS;
            t->items = n;
        }
        t->counted = n + 1u;
    }
    t->end = min(t->first + record[ACS_R_TILE_ITEMS], t->items);
    return 0;
}

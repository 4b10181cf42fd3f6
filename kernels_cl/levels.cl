/* Level by level: the scheduler for devices that order nothing between the groups of a launch.

   The host sorts an epoch into levels (a task's level is one more than its highest upstream's) and
   launches this kernel once for each, with a group for every entry of the level: the order between
   launches is all the order there is. Records, arguments and decisions are those of scheduler.cl. */

__kernel ACS_GROUP_ATTRIBUTE
void acs_level(__global uint *region, uint first) {
    __local uchar arena[ACS_ARENA] __attribute__((aligned(128)));
    __local uint staged[ACS_ARGS_WORDS] __attribute__((aligned(16)));
    const uint lane = get_local_id(0);
    const bool whole = acs_is_whole(region);
    const uint entry = whole ? region[first + get_group_id(0)] : ACS_NONE;
    const uint task = acs_task_of(entry), which = acs_tile_of(entry);
    const bool known = whole && task < region[ACS_H_TASKS];
    const __global uint *stored = known ? region + region[ACS_H_RECORDS] + task * ACS_RECORD_WORDS : region;
    __global uint *block = region + region[ACS_H_BLOCKS];
    const acs_record record = acs_read(stored);
    const bool sane = known && acs_has_tile(&record, which) &&
                      (record.body & 0xFFu) < ACS_BODIES &&
                      acs_is_sane(region, &record);
    const uint words = sane ? record.body >> 16 : 0u;
    const __global uint *args = sane && record.args ? region + record.args : stored + ACS_R_INLINE;
    acs_tile tile;
    acs_context context;
    const uint fault = sane ? acs_decide(&tile, &record, stored, region, which) : ACS_BAD_RECORD;
    if (whole && lane == 0) {
        if (get_group_id(0) == 0)
            block[ACS_B_UNFINISHED] = 0u; /* all that is counted here: somebody has come */
        if (sane && fault && which == 0) {
            const uint n = atomic_inc(block + ACS_B_FAULT + 3);
            if (n < ACS_TOLD) {
                block[ACS_B_FAULT + 4 + 2u * n] = task;
                block[ACS_B_FAULT + 5 + 2u * n] = tile.counted - 1u;
            }
            block[ACS_B_STATE + acs_place_of_task((region[ACS_H_TASKS] + 31u) >> 5, task)] = ACS_FAULTY | fault;
        }
        if (fault && (!sane || which == 0) && atomic_cmpxchg(block + ACS_B_FAULT, 0u, fault) == 0u)
            block[ACS_B_FAULT + 1] = task;
    }
#if ACS_GROUP == 1
    const __global uchar *blob = (const __global uchar *)args;
#else
    for (uint i = lane; i < words; i += ACS_GROUP)
        staged[i] = args[i];
    acs_group_barrier();
    const __local uchar *blob = (const __local uchar *)staged;
#endif
    if (sane) {
        acs_sizes(&context, &tile);
        acs_run(record.body & 0xFFu, &tile, context, lane, blob, arena);
    }
}

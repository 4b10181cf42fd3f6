/* The scheduler: a persistent kernel that takes ready tasks and runs them until none is left.

   One launch runs one epoch (descriptor.h). Every group goes through turns. In a turn it runs one
   tile of one task, and between turns it finds out what to run next. The host takes no part in this.

   PROTOCOL

   count[t]   upstream tasks of t that are not finished. The group that brings it to zero makes t ready.
   left[t]    low half: tiles of t not finished; high half: ranks of finishers that left.
   queue      the ring, a queue of entries. head and tail give out tickets and only grow. Ticket k
              belongs to slot k mod capacity.
   heir       the first successor of a task that has no other upstream.

   publish    take a ticket from tail, exchange the entry into its slot. If "abandoned" was there, the
              taker with that ticket has gone: clear the slot and publish again with a new ticket.
   take       take a ticket from head, poll its slot a bounded number of times, and rest between polls.
              If an entry comes, clear the slot and run it. If none comes, swap "empty" for "abandoned".
              If that fails, the entry has come just now: run it. If it succeeds, leave.
   finish     the last finisher of t (left[t]) counts down its successors. It keeps one task that
              became ready, its heir first, and publishes the others. A task of one tile whose only
              successor is an heir of one tile hands over without any atomic (fused). If the host marked
              the heir as a like task, values worked out for the first one are kept.
   gang       if a task of several tiles has an heir of several tiles, its finishers hand over by rank.
              The finisher that found r tiles left (its rank) reserves tile r - 1 of the heir and polls
              left[t] until no tile is left. It may wait for a tile that no group runs yet, so it never
              waits long. After a bounded number of polls, or a few if the queue has entries, it marks
              its rank in the high half. If tiles were left at that moment, it goes. The last finisher
              reads the marks in the same atomic operation by which it becomes the last. It publishes
              the tiles of the heir that no finisher holds.
   give       for a band, if there are more chains than groups (acs_bounds.company). A group that holds
              the next tile publishes it and takes one from the queue, if that has entries, but fewer
              than a tile for each group. So chains go on side by side to their end, and no group is
              left with one of them alone.
   leave      a group over its slice or its turns publishes what it holds and leaves.
   round      a loop counts as one more unfinished task. The group that brings `unfinished` down to that
              one closes the round and reads the flag. Either it brings `unfinished` to zero. Or it puts
              counts and tiles back to their first values, counts all tasks as unfinished again, and
              publishes what is ready at first. The first group that comes opens the first round. A
              count that was refused in a round ends the loop, too. Then counts stay as they are, since
              they say whose count it was.

   LIVENESS

   In the last launch of an epoch, groups leave only when they find nothing. There every published
   entry is run. Let k be the lowest ticket of an entry that never is, and let h be the ticket with
   which the last group to leave gave up. A taker has polled each ticket below head, so h <= k. If
   h = k, its swap came before the publisher's exchange, which then found "abandoned" and published
   again. If h < k, ticket h of tail belongs to a publisher whose exchange is still to come, since the
   slot was empty: that group has not left, and will give up later than the last. Hence one group alone
   drains an epoch. No group waits for one that is not running without giving up. `unfinished` reaches
   zero unless the records are wrong. Then all groups leave, and the host sees that work is left.
   Launches before the last may leave work, if they are over their slice or lack company. The host
   sends them only if a last one follows.

   Slots are never reused too early: all launches of an epoch together give out fewer tickets than the
   ring has slots (marks of takers who gave up stay in it from launch to launch). All launches of an
   epoch have the same `polls`, because that decides whether ranks hold tiles.

   ROUNDS

   When `unfinished` comes down to the loop itself, every task of the round is finished, and every group
   has counted what it finished. A rank that waits holds a tile of an heir, or has left its mark while
   tiles were left; so none waits. A group that is there draws a ticket, polls a slot, or leaves. None of
   these reads counts or tiles. The closing group therefore puts them back in place, in one order: first
   these, then a release, then entries. The ring goes on as if rounds were tasks. It has slots for all
   rounds of a run, and a taker of the round before takes what this one publishes.

   CHILDREN

   spawn      when a tile has run, lane 0 of its group goes through what its items listed. A child that
              becomes a task asks for units of the pool and slots of the ring, adds its tiles to left of
              its root, writes its record, and publishes its tiles. Without units or slots, or if all
              groups have work, the group runs some of the child's items itself, and then asks again for
              the rest. A lane that finds the list full runs items at once.

   The tile that spawns is counted down after that, so that left[root] is not zero in between. The group
   that counts it to zero, for a tile of the root or of a child, finishes the root. A record of the pool
   is used once in a round. It is written before its entries are published and read by takers of these,
   who have acquired them. No group waits for a child, so one group alone drains any tree. All bits of
   left[root] count: such a task hands nothing over by rank.

   ORDER: see memory_model.h. Work of a tile: group barrier, fence, then the atomics that tell of it.
   Taking a tile: the atomic that tells of it, fence, group barrier. An acquire empties the caches of
   all groups on its compute unit, so polls, which may be many, are relaxed. An entry that a poll finds
   is acquired before it is run, and its slot is cleared after that: a group that reads its own store
   acquires nothing. tests/test_protocol.py explores a model of this text exhaustively, with what each
   group sees of others' writes. */

#define ACS_READY 62u          /* tasks that one completion can make ready before lanes publish alone */
#define ACS_CHECK_TURNS 63u    /* of this many turns in a row, all but one may be fused */
#define ACS_PATIENCE 7u        /* polls of a waiting rank before it checks the queue, and between */
#define ACS_RANKS 16u
#define ACS_FIRST max(64u, 2u * ACS_GROUP) /* items that a group keeps at first */
#define ACS_SHARE 8u           /* a group runs at most this part of its kept items before it looks again */
#define ACS_SPREAD 8u          /* tiles of a child for each group that wants them */
#define ACS_WORTH 4u           /* cost of a child in times of making it, since its tiles are taken, too */
#define ACS_CLEANS 1u          /* mode: clean the other block */
#define ACS_MAY_NARROW 2u      /* mode: leave if much waits and half of the groups have gone */
#define ACS_COMPANY_AT 8u      /* mode: above it is how many groups run at one time, if tasks may be more */

/* ACS_STEADY: compilers that turn work-items into loops want few barriers, none of them under a
   condition. There only lane 0 releases, and no task is fused. */
#if ACS_STEADY
#define ACS_LANE 0u
#define ACS_LANES 1u
#define acs_wide_barrier()
#else
#define ACS_LANE ((uint)get_local_id(0))
#define ACS_LANES ACS_GROUP
#define acs_wide_barrier() acs_group_barrier()
#endif

/* ACS_WATCHED: the host reads meanwhile. A task of one tile notes in left[t] that it has started and
   ended; tasks of several tiles do so in any case. */
#ifndef ACS_WATCHED
#define ACS_WATCHED 0
#endif
#define ACS_STARTED 0x80000001u

/* ACS_TIMED: each group notes when it began and ended each tile. Nothing else differs. */
#if ACS_TIMED
#define ACS_NOTES , __global uint *notes
#define acs_begins() (shared.tile_began = acs_now(notes + ACS_N_ORDER))
#define acs_notes(what, root) acs_note(notes, &shared, what, root)
#else
#define ACS_NOTES
#define acs_begins()
#define acs_notes(what, root)
#endif

/* Code that hardly ever runs, kept out of the loop: on an H200 a fused turn takes a fifth less. */
#if defined(ACS_TIER_PTX)
#define ACS_COLD __attribute__((noinline))
#else
#define ACS_COLD inline
#endif

#define ACS_FORESEE (ACS_GROUP >= ACS_RECORD_WORDS && !ACS_STEADY)

/* Whether a group keeps the record with which a round begins. */
#define ACS_KEEPS_FIRST (ACS_GROUP > 1 && !ACS_STEADY)

/* Whether a group goes through a chain of like tasks without looking at all of each. */
#define ACS_CHAINS (ACS_FORESEE || ACS_GROUP == 1)

typedef struct {
    uint record[2][ACS_RECORD_WORDS] __attribute__((aligned(16)));
    uint args[ACS_ARGS_WORDS] __attribute__((aligned(16)));
    uint next;                 /* what the group runs next: an entry, or ACS_NONE */
    uint late;                 /* a ticket plus one: its entry was found by a relaxed look, 0: none */
    uint last;                 /* this was the task's last tile */
    uint release;              /* and there is something to count down or to publish */
    uint marks;                /* ranks that left */
    uint over;                 /* the group closes a round, and leaves */
    uint loops;                /* there is a loop: here, and below, lies what two rounds should not wait for */
    uint loop[ACS_L_RESETS];   /* the first words of a loop */
    uint n_initial, initial;   /* how many entries a round begins with, and the first of them */
    uint at_initial, at_resets; /* where in the region all of them are, and what is put back */
#if ACS_KEEPS_FIRST
    uint opening[ACS_RECORD_WORDS]; /* the record of that one */
#endif
    uint words, successors, n_successors; /* of the header, which an acquire drops from the caches */
    uint n_ready;
    uint ready[ACS_READY];     /* as references */
#if ACS_TIMED
    ulong tile_began;
    uint note, notes_end;      /* the next entry, and the end of those that the group took */
    uint entries, launches;    /* of the notes, not to be fetched for each */
#endif
#if ACS_SPAWNS
    uint listed[ACS_LIST_WORDS]; /* children that this tile offers; more than there is room for */
    uint at, to, body;         /* those that it sees to, of one function, and others of no items between */
    uint first, done, items;   /* of their items: those that the group runs lie between the first two */
    uint child, child_tiles;   /* a child to be published, and its tiles; 0: none */
    uint why;                  /* why the group runs items itself */
    uint idle;                 /* the group is not counted as busy */
    uint began;                /* when it began with items, in ticks */
#endif
} acs_shared;

#if ACS_TIMED
/* Note that a tile has ended, and that the next one begins. By lane 0. */
inline void acs_note(__global uint *notes, __local acs_shared *shared, uint reference, uint root) {
    const ulong now = acs_now(notes + ACS_N_ORDER), began = shared->tile_began;
    const uint entries = shared->entries;
    shared->tile_began = now;
    if (shared->note == shared->notes_end && acs_load(notes + ACS_N_USED) < entries) {
        const uint more = shared->notes_end ? ACS_NOTES_PIECE : ACS_NOTES_FIRST;
        shared->note = acs_add(notes + ACS_N_USED, more);
        shared->notes_end = shared->note + more;
    }
    if (shared->note == shared->notes_end || shared->note >= entries) {
        acs_add(notes + ACS_N_DROPPED, 1u);
        return;
    }
    __global uint4 *entry = (__global uint4 *)(notes + ACS_NOTES_HEADER + shared->note * ACS_NOTE_WORDS);
    entry[0] = (uint4)(reference, get_group_id(0), shared->launches, root);
    entry[1] = (uint4)((uint)began, (uint)(began >> 32), (uint)now, (uint)(now >> 32));
    ++shared->note;
}

inline void acs_open_notes(const __global uint *notes, __local acs_shared *shared) {
    shared->note = shared->notes_end = 0;
    shared->entries = notes[ACS_N_ENTRIES];
    shared->launches = notes[ACS_N_LAUNCHES];
}

/* Tell the kind of the clock, its value, and the time to note a tile. For one work-item, between
   epochs. Notes without a reference say nothing. */
__kernel void acs_read_clock(__global uint *notes, __global ulong *told) {
    __local acs_shared shared;
    const uint used = notes[ACS_N_USED], dropped = notes[ACS_N_DROPPED];
    acs_open_notes(notes, &shared);
    told[0] = ACS_NOW;
    told[1] = shared.tile_began = acs_now(notes + ACS_N_ORDER);
    for (uint i = 0; i < ACS_NOTES_PIECE; ++i)
        acs_note(notes, &shared, 0u, 0u);
    told[2] = acs_now(notes + ACS_N_ORDER);
    notes[ACS_N_USED] = used;
    notes[ACS_N_DROPPED] = dropped;
}
#endif

typedef struct {
    ulong slice_ns, started_ns;
    uint turns, polls;
    uint narrow;               /* groups launched, where a group may leave for want of company, or 0 */
    uint company;              /* groups that run at a time, where more tiles than these may, or 0 */
} acs_bounds;

typedef struct {
    __global uint *region, *block, *counts, *left, *queue;
    const __global uint *records;
    uint tasks, rows, mask;
} acs_epoch;

inline acs_epoch acs_open(__global uint *region, uint which) {
    acs_epoch e;
    e.region = region;
    e.tasks = region[ACS_H_TASKS];
    e.mask = region[ACS_H_QUEUE_MASK];
    e.block = region + region[ACS_H_BLOCKS] + which * region[ACS_H_BLOCK_WORDS];
    e.records = region + region[ACS_H_RECORDS];
    e.rows = (e.tasks + 31u) >> 5;
    e.counts = e.block + ACS_B_STATE;
    e.left = e.counts + 32u * e.rows;
    e.queue = e.left + 32u * e.rows;
    return e;
}

inline __global uint *acs_count(const acs_epoch *e, uint task) {
    return e->counts + acs_place_of_task(e->rows, task);
}

inline __global uint *acs_left(const acs_epoch *e, uint task) {
    return e->left + acs_place_of_task(e->rows, task);
}

inline __global uint *acs_slot(const acs_epoch *e, uint ticket) {
    return e->queue + acs_place_of_slot(e->mask, ticket);
}

/* Bring a block to its initial state, by all groups together: slots of the queue, counts and the rest.
   Called functions get a region, not an epoch: an epoch whose address is passed lies in memory, in the
   loop too. */
ACS_COLD void acs_clean(__global uint *region, uint which, uint from, uint step) {
    const acs_epoch epoch = acs_open(region, which), *e = &epoch;
    const bool loops = region[ACS_H_LOOP] != 0u;
    const uint n_initial = loops ? 0u : region[ACS_H_N_INITIAL];
    const uint unfinished = loops ? 1u : e->tasks;
    const uint used = min(max(region[ACS_H_USED + which], n_initial), e->mask + 1u);
    const __global uint *counts = region + region[ACS_H_COUNTS];
    const __global uint *initial = region + region[ACS_H_INITIAL];
    for (uint i = from; i < ACS_B_STATE; i += step)
        e->block[i] = i == ACS_B_TAIL ? n_initial : i == ACS_B_UNFINISHED ? unfinished : 0u;
    for (uint i = from; i < e->tasks; i += step) {
        *acs_count(e, i) = counts[i];
        *acs_left(e, i) = acs_tiles_of(e->records[i * ACS_RECORD_WORDS + ACS_R_TILES]);
    }
    for (uint i = from; i < used; i += step)
        *acs_slot(e, i) = i < n_initial ? initial[i] : ACS_NONE;
}

inline void acs_fault(const acs_epoch *e, uint code, uint task, uint value) {
    if (acs_swap_if_acquire(e->block + ACS_B_FAULT, 0u, code) == 0u) {
        acs_store(e->block + ACS_B_FAULT + 1, task);
        acs_store(e->block + ACS_B_FAULT + 2, value);
    }
}

inline void acs_publish(const acs_epoch *e, uint entry) {
    for (uint again = 0; again <= e->mask; ++again) {
        const uint ticket = acs_add(e->block + ACS_B_TAIL, 1u);
        acs_fence(); /* waits for the ticket and for the group's stores at the same time */
        __global uint *slot = acs_slot(e, ticket);
        if (acs_exchange(slot, entry) != ACS_ABANDONED)
            return;
        acs_store(slot, ACS_NONE);
    }
    acs_fault(e, ACS_BAD_ENTRY, acs_task_of(entry), e->mask);
}

/* Acquire what a relaxed poll found at a ticket, and clear its slot. */
inline void acs_acquire_late(const acs_epoch *e, __local acs_shared *shared) {
    __global uint *slot = acs_slot(e, shared->late - 1u);
    shared->late = 0;
    acs_load_acquire(slot);
    acs_store(slot, ACS_NONE);
}

/* Take an entry from the queue. ACS_NONE: the group leaves. Polls are relaxed. A found entry is
   acquired late if the record, which does not change, can be fetched at the same time. */
inline uint acs_take(const acs_epoch *e, __local acs_shared *shared, uint polls, uint narrow) {
    if (narrow) {
        const uint waiting = acs_load(e->block + ACS_B_TAIL) - acs_load(e->block + ACS_B_HEAD);
        if ((int)waiting >= (int)narrow && acs_load(e->block + ACS_B_GONE) * 2u >= narrow)
            return ACS_NONE;
    }
    const uint ticket = acs_add(e->block + ACS_B_HEAD, 1u);
    __global uint *slot = acs_slot(e, ticket);
    uint entry = acs_load(slot);
#if ACS_SPAWNS
    if (entry == ACS_NONE) {
        shared->idle = 1;
        acs_add(e->block + ACS_B_BUSY, 0u - 1u);
    }
#endif
    for (uint look = 0; look < polls && entry == ACS_NONE; ++look) {
        if (((look & 15u) == 15u || (look & (look + 1u)) == 0u) &&
            (acs_load(e->block + ACS_B_UNFINISHED) == 0u ||
             acs_is_fatal(acs_load(e->block + ACS_B_FAULT))))
            break;
        acs_rest(look);
        entry = acs_load(slot);
    }
    if (entry == ACS_NONE) {
        entry = acs_swap_if_acquire(slot, ACS_NONE, ACS_ABANDONED);
        if (entry != ACS_NONE)
            acs_store(slot, ACS_NONE);
    } else {
        shared->late = ticket + 1u;
        if (!ACS_FORESEE || (ACS_SPAWNS && acs_task_of(entry) >= e->tasks)) /* a child's record is new */
            acs_acquire_late(e, shared);
    }
#if ACS_SPAWNS
    if (shared->idle && entry != ACS_NONE) {
        shared->idle = 0;
        acs_add(e->block + ACS_B_BUSY, 1u);
    }
#endif
    return min(entry, ACS_CLOSES - 1u); /* a damaged slot closes no round */
}

/* Wait, as rank `rank`, for the last finisher of `task`. Returns whether it may go on to the heir. */
inline bool acs_wait_for_heir(const acs_epoch *e, uint task, uint rank, uint polls) {
    __global uint *left = acs_left(e, task);
    for (uint look = 0; look <= ACS_PATIENCE && look < polls; ++look)
        if ((acs_load_acquire(left) & 0xFFFFu) == 0u)
            return true;
    for (uint look = ACS_PATIENCE + 1u; look < polls; ++look) {
        if ((look & ACS_PATIENCE) == 0u &&
            (int)(acs_load(e->block + ACS_B_TAIL) - acs_load(e->block + ACS_B_HEAD)) > 0)
            break;
        acs_rest(look);
        if ((acs_load(left) & 0xFFFFu) == 0u) {
            acs_load_acquire(left);
            return true;
        }
    }
    return (acs_or_acquire(left, 1u << (15u + rank)) & 0xFFFFu) == 0u;
}

/* Count down the task in `reference`, since one of its upstream is finished. Returns whether it became
   ready. Edges go from lower to higher tasks, so that not even wrong records make a circle. */
inline bool acs_count_down(const acs_epoch *e, uint upstream, uint reference) {
    const uint task = acs_task_of(reference);
    if (task >= e->tasks || task <= upstream) {
        acs_fault(e, ACS_BAD_SUCCESSOR, task, reference);
        return false;
    }
    const uint before = acs_sub_release_acquire(acs_count(e, task), 1u);
    if (before == 0u)
        acs_fault(e, ACS_BAD_COUNT, task, 0u);
    return before == 1u;
}

/* A task became ready in one lane: note it for the group, or publish it here. */
inline void acs_note_ready(const acs_epoch *e, __local acs_shared *shared, uint reference) {
    const uint place = atomic_inc(&shared->n_ready);
    if (place < ACS_READY) {
        shared->ready[place] = reference;
        return;
    }
    for (uint tile = 0; tile <= acs_tile_of(reference); ++tile)
        acs_publish(e, tile << ACS_TASK_BITS | (reference & ACS_TASK_MASK));
}

/* The window of the paper, if it has fewer slots than the epoch has tasks. Tasks are inserted in order
   while there is a free slot. Until it is inserted a task has one more upstream. Its upstream list needs
   no second look at insertion: tasks that finished before have counted it down already, which is what
   the paper's upstream-load step works out. One work-item inserts at a time, and serves requests that
   come meanwhile. */
ACS_COLD void acs_insert(__global uint *region, uint which, __local acs_shared *shared, uint finished) {
    const acs_epoch epoch = acs_open(region, which), *e = &epoch;
    __global uint *state = e->block + ACS_B_INSERTING;
    const uint slots = e->region[ACS_H_WINDOW];
    acs_add(state + 2, 1u);
    acs_fence();
    if (acs_add(state, 1u) != 0u)
        return;
    for (uint round = 0; round <= e->tasks; ++round) {
        const uint requests = acs_load(state);
        acs_fence();
        uint next = acs_load(state + 1);
        if (next == 0u)
            next = min(slots, e->tasks);
        while (next < e->tasks && next - acs_load(state + 2) < slots) {
            const uint last = acs_tiles_of(e->records[next * ACS_RECORD_WORDS + ACS_R_TILES]) - 1u;
            const uint reference = last << ACS_TASK_BITS | (next + 1u);
            if (acs_count_down(e, finished, reference))
                acs_note_ready(e, shared, reference);
            ++next;
        }
        acs_store(state + 1, next);
        acs_fence();
        if (acs_sub_release_acquire(state, requests) == requests)
            return;
    }
}

/* How many tiles of the heir the finishers of a task hold. */
inline uint acs_held(const acs_record *r, uint polls) {
    return polls && (r->body & ACS_F_GANG) ? min(r->tiles, ACS_RANKS) : 1u;
}

/* Count a finished tile. Was it the task's last? Sets last, release, marks and next. By lane 0. */
inline void acs_end_tile(const acs_epoch *e, __local acs_shared *shared, const acs_record *r,
                         uint task, uint tile, bool sane, uint polls) {
    uint rank = 1, marks = 0, next = ACS_NONE;
    if (!sane) {
        acs_fault(e, ACS_BAD_RECORD, task, tile);
        rank = 0;
    } else if (ACS_SPAWNS && (r->body & ACS_F_SPAWNS)) {
        rank = acs_sub_release_acquire(acs_left(e, task), 1u);
        if (rank == 0u)
            acs_fault(e, ACS_BAD_COUNT, task, tile);
    } else if (r->tiles > 1u) {
        const uint before = acs_sub_release_acquire(acs_left(e, task), 1u);
        rank = before & 0xFFFFu;
        marks = before >> 16;
        if (rank - 1u >= r->tiles)
            acs_fault(e, ACS_BAD_COUNT, task, tile);
        if (rank != 1u && polls && (r->body & ACS_F_GANG) && rank <= ACS_RANKS &&
            rank - 1u <= acs_tile_of(r->heir) && acs_wait_for_heir(e, task, rank, polls))
            next = (rank - 1u) << ACS_TASK_BITS | (r->heir & ACS_TASK_MASK);
    } else if (ACS_WATCHED) {
        acs_store(acs_left(e, task), 0u);
    }
    if (rank == 1u)
        next = r->heir & ACS_TASK_MASK;
    shared->next = next;
    shared->last = rank == 1u;
    shared->release = rank == 1u && (r->n_successors != 0u || marks != 0u ||
                                     (r->heir != 0u && acs_tile_of(r->heir) >= acs_held(r, polls)));
    shared->marks = marks;
    shared->n_ready = 0;
}

/* Finish a task: count down its successors, publish tasks that became ready and are not kept. */
inline void acs_release(const acs_epoch *e, __local acs_shared *shared, const acs_record *r, uint task, uint polls) {
    const __global uint *successors = e->region + shared->successors + r->successors;
    for (uint i = ACS_LANE; i < r->n_successors; i += ACS_LANES)
        if (acs_count_down(e, task, successors[i]))
            acs_note_ready(e, shared, successors[i]);
    acs_wide_barrier();
    /* the heir's tiles that no finisher holds */
    if (r->heir) {
        const uint held = acs_held(r, polls);
        for (uint i = 1u + ACS_LANE; i <= acs_tile_of(r->heir); i += ACS_LANES)
            if (i >= held || (shared->marks >> i & 1u))
                acs_publish(e, i << ACS_TASK_BITS | (r->heir & ACS_TASK_MASK));
    }
    /* the others: the first tile of the first one is kept if there is no heir */
    const uint n_ready = min(shared->n_ready, ACS_READY);
    for (uint k = 0; k < n_ready; ++k) {
        const uint keep = k == 0u && r->heir == 0u;
        for (uint i = keep + ACS_LANE; i <= acs_tile_of(shared->ready[k]); i += ACS_LANES)
            acs_publish(e, i << ACS_TASK_BITS | (shared->ready[k] & ACS_TASK_MASK));
    }
}

/* Whether the slice is over. It is a call, or NVIDIA's compiler reads the clock in any case, and waits. */
ACS_COLD bool acs_is_over(ulong slice_ns, ulong started_ns) {
    return acs_clock_ns() - started_ns > slice_ns;
}

/* Whether what a group holds goes to the end of the queue: if entries wait there, but fewer than a tile
   for each group. With more, going on with what is held costs no time. */
inline bool acs_gives(const acs_epoch *e, uint company) {
    const uint waiting = acs_load(e->block + ACS_B_TAIL) - acs_load(e->block + ACS_B_HEAD);
    return waiting - 1u < company - 1u;
}

/* Find what the group runs next: what it holds, else an entry of the queue. ACS_NONE: it leaves. A
   record that is there already, the heir's, is not fetched again. `company`: as of acs_bounds, for a
   band, or 0. By lane 0. */
inline void acs_choose(const acs_epoch *e, __local acs_shared *shared, const acs_bounds *until,
                       uint *finished, uint turn, uint heir, uint company) {
    uint next = shared->next;
    if (shared->release && next == ACS_NONE && shared->n_ready)
        next = shared->ready[0] & ACS_TASK_MASK;
    const bool over = turn + 1u == until->turns ||
                      (until->slice_ns && acs_is_over(until->slice_ns, until->started_ns));
    if (next != ACS_NONE && (over || (company && acs_gives(e, company)))) {
        acs_publish(e, next);
        next = ACS_NONE;
    }
    if (next == ACS_NONE) {
        uint left = 0;
        if (*finished)
            left = acs_sub_release_acquire(e->block + ACS_B_UNFINISHED, *finished) - *finished;
        *finished = 0;
        if (left == 1u && shared->loops) {
            shared->over = over;
            next = ACS_CLOSES;
        } else if (!over) {
            next = acs_take(e, shared, until->polls, until->narrow);
            if (shared->late && acs_task_of(next) == acs_task_of(heir))
                acs_acquire_late(e, shared);
        }
    }
    shared->next = next;
}

/* Begin the next round, or end the loop. By all lanes of the group that closed the round before, while
   all others at most look for work. shared.next is what it runs then. An acquire has just emptied the
   caches, so what needs no other read is read at once, by each lane, before anything is done with it.
   Nobody changes it meanwhile. */
ACS_COLD void acs_begin_round(__global uint *region, __global uint *block, uint tasks, uint which,
                              __local acs_shared *shared) {
    const __local uint *loop = shared->loop;
    const uint n_resets = loop[ACS_L_N_RESETS], n_initial = shared->n_initial;
    const __global uint *resets = region + shared->at_resets;
    const __global uint *initial = region + shared->at_initial;
    volatile __global uint *flag = (volatile __global uint *)(
        (ulong)loop[ACS_L_FLAG + 1] << 32 | loop[ACS_L_FLAG]);
    const acs_epoch epoch = acs_open(region, which);
    uint place = 0, value = 0, entry = 0;
    if (ACS_LANE < n_resets) {
        place = resets[2u * ACS_LANE];
        value = resets[2u * ACS_LANE + 1u];
    }
    if (ACS_LANE + 1u < n_initial)
        entry = initial[ACS_LANE + 1u];
    const uint fault = acs_load(block + ACS_B_FAULT);
    const uint set = acs_load(flag), rounds = acs_load(block + ACS_B_ROUND);
    if (fault == 0u && ACS_LANE < n_resets) { /* marks of refused counts stay */
        block[ACS_B_STATE + place] = value;
        for (uint i = ACS_LANE + ACS_LANES; i < n_resets; i += ACS_LANES)
            block[ACS_B_STATE + resets[2u * i]] = resets[2u * i + 1u];
    }
    const bool more = (set != 0u) & (rounds < loop[ACS_L_AT_MOST]) & (fault == 0u);
    acs_wide_barrier();
    if (ACS_LANE == 0u) {
        if (more)
            acs_store(block + ACS_B_ROUND, rounds + 1u);
        if (ACS_SPAWNS)
            acs_store(block + ACS_B_UNITS, 0u);
        acs_store(block + ACS_B_UNFINISHED, more ? tasks + 1u : 0u);
        shared->next = more && !shared->over ? shared->initial : ACS_NONE;
    }
    acs_wide_barrier();
    if (!more)
        return;
    if (shared->next == ACS_NONE && ACS_LANE == 0u)
        acs_publish(&epoch, shared->initial);
    if (ACS_LANE + 1u < n_initial) /* outside of the loop, which on an H200 makes a round 1 us longer */
        acs_publish(&epoch, entry);
    for (uint i = ACS_LANE + 1u + ACS_LANES; i < n_initial; i += ACS_LANES)
        acs_publish(&epoch, initial[i]);
}

#if ACS_SPAWNS
inline void acs_begin_list(__local acs_shared *shared) {
    shared->listed[0] = shared->at = shared->to = shared->done = shared->items = shared->child_tiles = 0;
}

/* Take those of the list that are of one function, and give each its items. Returns whether there are
   any. */
inline bool acs_gather(__global uint *list, __local acs_shared *shared) {
    __local uint *items = shared->listed + ACS_L_ITEMS;
    const __local uint *bodies = shared->listed + ACS_L_BODY;
    uint at = shared->at, end = 0;
    shared->to = min(shared->listed[0], ACS_LISTED);
    while (at < shared->to && items[at] == 0u)
        ++at;
    shared->at = at;
    if (at < shared->to)
        shared->body = bodies[at];
    for (uint i = at; i < shared->to; ++i) {
        list[i * ACS_UNIT + ACS_C_BEGIN] = end;
        if (bodies[i] == shared->body && items[i] <= 0x7FFFFFFFu - end) {
            end += items[i];
            items[i] = 0u;
        }
        list[i * ACS_UNIT + ACS_C_END] = end;
    }
    shared->first = shared->done = 0;
    shared->items = end;
    return end != 0u;
}

/* Return a mean in which newer values count more. */
inline uint acs_mean(uint before, uint now) {
    return before ? max(before - before / 8u + now / 8u, 1u) : max(now, 1u);
}

/* Note how long something took of a body: a pass over `items` items, a tile of a child, or making a
   child. 0: this was not timed. All that is known is read at once. By lane 0. */
ACS_COLD void acs_learn(__global uint *row, uint pass, uint items, uint tile, uint making) {
    uint known_pass = row[ACS_T_PASS], known_tile = row[ACS_T_TILE], known_making = row[ACS_T_MAKING];
    if (pass && items)
        row[ACS_T_PASS] = known_pass = acs_mean(known_pass, pass / ((items - 1u) / ACS_GROUP + 1u));
    if (tile)
        row[ACS_T_TILE] = acs_mean(known_tile, tile);
    if (making)
        row[ACS_T_MAKING] = known_making = acs_mean(known_making, making);
    if (known_pass && known_making)
        row[ACS_T_LEAST] = clamp(ACS_WORTH * (known_making / known_pass), 1u, ACS_MOST_LEAST);
}

/* The published controller: whether a child of that many tiles would end after its items in this group.
   A child queues behind `queued` tiles and has the throughput of all groups. While nothing is known of
   a body its children are made, as published. */
inline bool acs_is_slower(const __global uint *row, uint items, uint tiles, uint queued, uint groups) {
    const ulong waits = (ulong)(queued + tiles) * row[ACS_T_TILE] / groups;
    const ulong itself = (ulong)((items - 1u) / ACS_GROUP + 1u) * row[ACS_T_PASS];
    return row[ACS_T_TILE] != 0u && row[ACS_T_MAKING] + waits > itself;
}

/* Make a task of the items that the group has not run, if there is room. By lane 0. */
ACS_COLD bool acs_spawn(__global uint *region, uint which, __global uint *pool, __global uint *learned,
                        __local acs_shared *shared, uint root, uint word, uint groups) {
    const acs_epoch epoch = acs_open(region, which), *e = &epoch;
    const uint items = shared->items - shared->done, controller = acs_controller_of(word);
    /* one look after the other would take as long each as all of them together */
    const uint queued = acs_load(e->block + ACS_B_TAIL) - acs_load(e->block + ACS_B_HEAD);
    const uint busy = acs_load(e->block + ACS_B_BUSY), unfinished = acs_load(acs_left(e, root));
    const uint given = acs_load(e->block + ACS_B_UNITS), taken = acs_load(e->block + ACS_B_ASKED);
    const uint waiting = (uint)max((int)queued, 0), places = min(groups, ACS_PLACES);
    uint wanting = groups;
    if (controller == ACS_HUNGRY)   /* groups that neither have work nor find it in the queue */
        wanting = (uint)max((int)places - (int)busy - (int)waiting, 0);
    shared->why = ACS_ALL_BUSY;
    if (wanting == 0u)
        return false;
    /* enough tiles for those groups, with no fewer items than a child has */
    const uint least = acs_threshold_of(word) ? acs_threshold_of(word) : acs_least(learned, shared->body);
    const uint most = min(ACS_SPREAD * wanting, ACS_MOST_CHILD_TILES);
    uint tile_items = max((items - 1u) / most + 1u, least);
    tile_items = ((min(tile_items, items) - 1u) / ACS_GROUP + 1u) * ACS_GROUP;
    const uint entries = shared->to - shared->at;
    const uint tiles = (items - 1u) / tile_items + 1u, units = entries + 1u;
    shared->why = ACS_SLOWER;
    if (controller == ACS_CCQS &&
        acs_is_slower(learned + shared->body * ACS_T_WORDS, items, tiles, waiting, places))
        return false;
    shared->why = ACS_NO_ROOM; /* looked at first, so that what is asked for in vain does not add up */
    if (given + units > ACS_POOL_UNITS || taken + tiles > ACS_CHILD_SLOTS || e->tasks > ACS_TASK_MASK - ACS_POOL_UNITS)
        return false;
    const uint at_most = acs_at_most_of(word);
    if (unfinished + tiles > at_most) {
        shared->why = ACS_TOO_MANY;
        return false;
    }
    const uint before = acs_add(acs_left(e, root), tiles);
    const uint unit = acs_add(e->block + ACS_B_UNITS, units);
    const uint asked = acs_add(e->block + ACS_B_ASKED, tiles);
    if (before + tiles > at_most || unit + units > ACS_POOL_UNITS || asked + tiles > ACS_CHILD_SLOTS) {
        if (before + tiles > at_most)
            shared->why = ACS_TOO_MANY;
        acs_add(acs_left(e, root), 0u - tiles); /* never to zero: the tile that spawns is counted */
        return false;
    }
    acs_add(e->block + ACS_B_SPAWNED, items);
    __global uint *record = pool + unit * ACS_UNIT;
    for (uint i = 0; i < ACS_UNIT; ++i)
        record[i] = 0u;
    record[ACS_R_BODY] = shared->body | ACS_F_PLAIN;
    record[ACS_R_TILES] = tiles;
    record[ACS_R_ITEMS] = items;
    record[ACS_R_TILE_ITEMS] = tile_items;
    record[ACS_R_LOCAL] = 1u;
    record[ACS_R_UPTO] = entries;
    record[ACS_R_PARENT] = root;
    shared->child = unit;
    shared->child_tiles = tiles;
    return true;
}

/* Publish the child that acs_spawn has made. By all lanes. */
inline void acs_publish_child(const acs_epoch *e, __global uint *pool, const __global uint *list,
                              const __local acs_shared *shared, uint lane) {
    for (uint i = shared->at + lane; i < shared->to; i += ACS_GROUP) {
        const __global uint *listed = list + i * ACS_UNIT;
        __global uint *entry = pool + (shared->child + 1u + i - shared->at) * ACS_UNIT;
        entry[ACS_C_BEGIN] = listed[ACS_C_BEGIN] - shared->done; /* below zero where some have run */
        entry[ACS_C_END] = max(listed[ACS_C_END], shared->done) - shared->done;
        for (uint word = ACS_C_ARGS; word < ACS_UNIT; ++word)
            entry[word] = listed[word];
    }
    acs_group_barrier();
    for (uint i = lane; i < shared->child_tiles; i += ACS_GROUP)
        acs_publish(e, i << ACS_TASK_BITS | (e->tasks + shared->child + 1u));
    acs_group_barrier();
}

/* Decide what the group does next with what its tile listed: publish a child, run more items itself, or
   nothing if all is done. It runs few items at first, then twice as many each time, and at most a share
   of the rest. So it soon checks again whether another group wants the rest. By lane 0. */
ACS_COLD void acs_settle(__global uint *region, uint which, __global uint *pool, __global uint *learned,
                         __global uint *list, __local acs_shared *shared, uint root, uint word,
                         uint groups) {
    const uint now = acs_ticks();
    __global uint *row = learned + shared->body * ACS_T_WORDS;
    if (shared->done > shared->first)
        acs_learn(row, now - shared->began, shared->done - shared->first, 0u, 0u);
    else if (shared->child_tiles)
        acs_learn(row, 0u, 0u, 0u, now - shared->began);
    shared->began = now;
    if (shared->child_tiles)
        shared->done = shared->items;
    shared->child_tiles = 0;
    shared->first = shared->done;
    if (shared->done == shared->items && !acs_gather(list, shared))
        return;
    if (acs_spawn(region, which, pool, learned, shared, root, word, groups))
        return;
    const acs_epoch epoch = acs_open(region, which);
    const uint left = shared->items - shared->done;
    const uint some = max(min(shared->done, left / ACS_SHARE), max(acs_threshold_of(word), ACS_FIRST));
    const uint n = min((some - 1u) / ACS_GROUP * ACS_GROUP + ACS_GROUP, left);
    acs_add(epoch.block + ACS_B_KEPT + shared->why, n);
    shared->done += n;
    shared->began = acs_ticks();
}
#define ACS_POOL , __global uint *pool
#else
#define ACS_POOL
#endif

/* Whether the heir of a task, if it has one, is a task behind it. */
inline bool acs_has_heir(const acs_epoch *e, const acs_record *r, uint task) {
    const uint heir = acs_task_of(r->heir);
    return (r->heir == 0u) | ((heir > task) & (heir < e->tasks));
}

/* Whether a group hands a task over to itself, in this turn. `flag`: the flag for that, or 0. */
inline bool acs_is_fused(const acs_bounds *until, const acs_record *r, uint flag, uint turn) {
    return !ACS_STEADY & ((r->body & flag) != 0u) & (r->heir != 0u) & (turn + 1u < until->turns) &
           (until->slice_ns == 0 || (turn & ACS_CHECK_TURNS) != ACS_CHECK_TURNS);
}

__kernel ACS_GROUP_ATTRIBUTE
void acs_scheduler(__global uint *region, uint which, uint turns, uint polls, ulong slice_ns, uint mode ACS_POOL ACS_NOTES) {
    __local acs_shared shared __attribute__((aligned(16)));
    __local uchar arena[ACS_ARENA] __attribute__((aligned(128)));
    const uint lane = get_local_id(0);
    const acs_epoch e = acs_open(region, which);
    const uint groups = get_num_groups(0);
    const acs_bounds until = {slice_ns, slice_ns ? acs_clock_ns() : 0, turns, polls,
                              mode & ACS_MAY_NARROW ? groups : 0u, mode >> ACS_COMPANY_AT};
    const bool windowed = region[ACS_H_WINDOW] != 0u;
#if ACS_SPAWNS
    __global uint *learned = pool;
    pool += ACS_BODIES * ACS_T_WORDS + ACS_UNIT - 1u - (ACS_BODIES * ACS_T_WORDS - 1u) % ACS_UNIT;
#endif
    uint finished = 0;         /* tasks not yet subtracted from `unfinished`; lane 0 counts */
    uint buffer = 0;           /* which half of shared.record is current */
    bool staged = false;       /* the record of the next task is there already */

    bool whole = true;         /* the header, as far as lane 0 knows */

    if ((mode & ACS_CLEANS) && acs_is_whole(region))
        acs_clean(region, 1u - which, get_group_id(0) * ACS_GROUP + lane, groups * ACS_GROUP);
    if (lane == 0) {
        whole = acs_is_whole(region);
#if ACS_TIMED
        acs_open_notes(notes, &shared);
#endif
        shared.late = 0;
        shared.over = 0;
        shared.words = whole ? region[ACS_H_WORDS] : 0u;
        shared.successors = whole ? region[ACS_H_SUCCESSORS] : 0u;
        shared.n_successors = whole ? region[ACS_H_N_SUCCESSORS] : 0u;
#if ACS_SPAWNS
        shared.idle = 0;
        acs_begin_list(&shared);
        if (whole)
            acs_add(e.block + ACS_B_BUSY, 1u);
#endif
        const uint loop = whole ? region[ACS_H_LOOP] : 0u;
        shared.loops = loop != 0u;
        if (loop) {
            for (uint i = 0; i < ACS_L_RESETS; ++i)
                shared.loop[i] = region[loop + i];
            shared.n_initial = region[ACS_H_N_INITIAL];
            shared.at_initial = region[ACS_H_INITIAL];
            shared.at_resets = loop + ACS_L_RESETS;
            shared.initial = region[shared.at_initial];
#if ACS_KEEPS_FIRST
            const uint first = acs_task_of(shared.initial);
            const __global uint *stored = e.records + (first < e.tasks ? first : 0u) * ACS_RECORD_WORDS;
            for (uint i = 0; i < ACS_RECORD_WORDS; ++i)
                shared.opening[i] = stored[i];
#endif
        }
        shared.next = !whole ? ACS_NONE
                      : loop && acs_swap_if_acquire(e.block + ACS_B_OPENED, 0u, 1u) == 0u
                          ? ACS_CLOSES
                          : acs_take(&e, &shared, polls, 0u);
#if ACS_STEADY
        if (shared.next == ACS_CLOSES)
            acs_begin_round(region, e.block, e.tasks, which, &shared);
#endif
    }
    acs_group_barrier();
    uint entry = shared.next;

    for (uint turn = 0; turn < turns; ++turn) {
        if (entry + 1u <= 1u) {   /* ACS_NONE or ACS_CLOSES, which seldom come */
#if !ACS_STEADY
            if (entry == ACS_CLOSES) {
#if ACS_KEEPS_FIRST
                for (uint i = lane; i < ACS_RECORD_WORDS; i += ACS_GROUP)
                    shared.record[buffer][i] = shared.opening[i];
                staged = true;
#endif
                acs_begin_round(region, e.block, e.tasks, which, &shared);
                entry = shared.next;
            }
            if (entry == ACS_NONE)
#endif
                break;
        }
        const uint tile = acs_tile_of(entry);
        uint task = acs_task_of(entry);
        bool known = task < e.tasks;
        const __global uint *stored = e.records + (known ? task : 0u) * ACS_RECORD_WORDS;
#if ACS_SPAWNS
        const bool is_child = !known & (task - e.tasks < ACS_POOL_UNITS - 1u);
        if (is_child) {
            stored = pool + (task - e.tasks) * ACS_UNIT;
            known = true;
        }
#endif

        /* the record and its arguments, for all lanes */
#if ACS_GROUP == 1
        const __global uint *words = stored;
#else
        const __local uint *words = shared.record[buffer];
        if (ACS_STEADY || !staged) {
#if ACS_GROUP >= ACS_RECORD_WORDS
            uint word = 0;
            if (lane < ACS_RECORD_WORDS)
                word = stored[lane];
            if (ACS_FORESEE && lane == 0 && shared.late)
                acs_acquire_late(&e, &shared);
            if (lane < ACS_RECORD_WORDS)
                shared.record[buffer][lane] = word;
#else
            for (uint i = lane; i < ACS_RECORD_WORDS; i += ACS_GROUP)
                shared.record[buffer][i] = stored[i];
#endif
            acs_group_barrier();
        }
#endif
        acs_record record = acs_read(words);
        ACS_BLOB const uchar *blob = (ACS_BLOB const uchar *)(words + ACS_R_INLINE);
        uint heir = record.heir;
        bool sane = known & acs_has_tile(&record, tile) & ((record.body & 0xFFu) < ACS_BODIES) &
                    acs_has_heir(&e, &record, task);
        if (record.args | record.n_successors)
            sane = sane && acs_is_sane(shared.words, shared.n_successors, &record);
#if ACS_SPAWNS
        const uint root = is_child ? words[ACS_R_PARENT] : task, n_entries = words[ACS_R_UPTO];
        if (is_child)
            sane = sane & (root < e.tasks) & (n_entries - 1u < ACS_LISTED);
        const __global uint *rooted = e.records + (root < e.tasks ? root : 0u) * ACS_RECORD_WORDS;
        const bool spawns = sane & ((rooted[ACS_R_BODY] & ACS_F_SPAWNS) != 0u);
        const uint root_of_child = is_child ? root + 1u : 0u;
#else
        const bool spawns = false;
        const uint root_of_child = 0u;
#endif
        const uint company = record.body & ACS_F_BAND ? until.company : 0u;
        const uint fuses = sane & (company == 0u) ? ACS_F_FUSED : 0u;
        bool fused = acs_is_fused(&until, &record, fuses, turn);
#if ACS_FORESEE
        bool foresee = sane & (heir != 0u) & (lane < ACS_RECORD_WORDS);
        uint ahead = 0;        /* the heir's record comes while this task runs */
        if (foresee)
            ahead = stored[lane + (acs_task_of(heir) - task) * ACS_RECORD_WORDS];
#endif
#if ACS_GROUP == 1
        if (record.args && sane)
            blob = (const __global uchar *)(region + record.args);
#else
        if (ACS_BIG_ARGS && sane && record.args) {
            for (uint i = lane; i < record.body >> 16; i += ACS_GROUP)
                shared.args[i] = region[record.args + i];
            blob = (const __local uchar *)shared.args;
        }
        if (ACS_BIG_ARGS && (ACS_STEADY || record.args))
            acs_group_barrier();
#endif
        if (ACS_WATCHED && sane && lane == 0 && record.tiles == 1u && !spawns)
            acs_store(acs_left(&e, task), ACS_STARTED);
        if (sane) {
            if (lane == 0)
                acs_begins();
            acs_tile work;
            acs_context context;
            const uint fault = acs_decide(&work, &record, words, region, tile);
            if (fault && lane == 0 && tile == 0) {
                const uint n = acs_add(e.block + ACS_B_FAULT + 3, 1u);
                acs_fault(&e, fault, task, work.counted - 1u);
                if (n < ACS_TOLD) {
                    acs_store(e.block + ACS_B_FAULT + 4 + 2u * n, task);
                    acs_store(e.block + ACS_B_FAULT + 5 + 2u * n, work.counted - 1u);
                }
                acs_store(acs_count(&e, task), ACS_FAULTY | fault);
            }
            acs_sizes(&context, &work);
#if ACS_SPAWNS
            context.list = pool + (ACS_POOL_UNITS + get_group_id(0) * ACS_LISTED) * ACS_UNIT;
            context.listed = shared.listed;
            context.least = spawns ? acs_threshold_of(rooted[ACS_R_PARENT]) : 0xFFFFFFFFu;
            context.learned = context.least ? 0 : learned;
            work.entries = stored + ACS_UNIT;
            work.n_entries = n_entries;
            uint body = record.body & 0xFFu;
#endif
#if ACS_CHAINS
            for (;;) {
#endif
#if ACS_SPAWNS
            const uint child_body = body * ACS_T_WORDS;
            uint began = spawns & is_child ? acs_ticks() : 0u;
            for (;;) {
                acs_run(body, &work, context, lane, blob, arena);
                if (!spawns)
                    break;
                acs_group_barrier();
                if (lane == 0 && began) {
                    const uint took = acs_ticks() - began;
                    acs_learn(learned + child_body, took, work.end - work.first, took, 0u);
                }
                began = 0u;
                bool made;
                do {
                    if (lane == 0)
                        acs_settle(region, which, pool, learned, context.list, &shared, root,
                                   rooted[ACS_R_PARENT], groups);
                    acs_group_barrier();
                    made = shared.child_tiles != 0u;
                    if (made)
                        acs_publish_child(&e, pool, context.list, &shared, lane);
                } while (made);
                if (shared.items == 0u)
                    break;
                body = shared.body;
                work.shape = 0;
                work.first = shared.first;
                work.end = work.items = shared.done;
                work.entries = context.list + shared.at * ACS_UNIT;
                work.n_entries = shared.to - shared.at;
            }
#else
            acs_run(record.body & 0xFFu, &work, context, lane, blob, arena);
#endif
#if ACS_CHAINS
            /* values worked out hold for the heir, too, if it differs only in its arguments */
            if (!(fused & ((record.body & ACS_F_ALIKE) != 0u)))
                break;
            const uint next = acs_task_of(heir);
#if ACS_GROUP == 1
            const __global uint *next_words = stored + (next - task) * ACS_RECORD_WORDS;
#else
            const __local uint *next_words = shared.record[buffer ^ 1u];
            if (foresee)
                shared.record[buffer ^ 1u][lane] = ahead;
#endif
            acs_group_barrier();
            const acs_record other = acs_read(next_words);
            if (!acs_is_like(&other, &record) | !acs_has_heir(&e, &other, next))
                break;   /* damaged: a turn of its own tells */
            if (ACS_WATCHED && lane == 0) {
                acs_store(acs_left(&e, task), 0u);
                acs_store(acs_left(&e, next), ACS_STARTED);
            }
            if (lane == 0)
                acs_notes(task + 1u, 0u);
            ++finished;
            ++turn;
            buffer ^= 1u;
            stored += (next - task) * ACS_RECORD_WORDS;
            task = next;
            blob = (ACS_BLOB const uchar *)(next_words + ACS_R_INLINE);
            record = other;
            heir = record.heir;
            fused = acs_is_fused(&until, &record, fuses, turn);
#if ACS_FORESEE
            foresee = (heir != 0u) & (lane < ACS_RECORD_WORDS);
            if (foresee)
                ahead = stored[lane + (acs_task_of(heir) - task) * ACS_RECORD_WORDS];
#endif
            }
#endif
        }
        buffer ^= 1u;
        staged = false;
#if ACS_FORESEE
        if (foresee)
            shared.record[buffer][lane] = ahead;
        staged = sane & (heir != 0u);
#endif
        acs_group_barrier();   /* the tile is done */
        if (sane && lane == 0)
            acs_notes(tile << ACS_TASK_BITS | (task + 1u), root_of_child);
        if (fused) {
            if (ACS_WATCHED && lane == 0)
                acs_store(acs_left(&e, task), 0u);
            ++finished;
            entry = heir & ACS_TASK_MASK;
            continue;
        }

        /* is the task done? */
#if ACS_SPAWNS
        if (is_child & sane) {   /* its root is what may be */
            task = root;
            record = acs_read_stored(rooted);
        }
#endif
        if (lane == 0) {
#if ACS_SPAWNS
            acs_begin_list(&shared);
#endif
            acs_end_tile(&e, &shared, &record, task, tile, sane, polls);
            if (shared.last) {
                ++finished;
                if (windowed) {
                    acs_insert(region, which, &shared, task);
                    shared.release = 1;
                }
            }
#if !ACS_STEADY
            if (!shared.release)
                acs_choose(&e, &shared, &until, &finished, turn, heir, company);
        }
        acs_group_barrier();
        if (shared.release) {
            acs_release(&e, &shared, &record, task, polls);
            if (lane == 0)
                acs_choose(&e, &shared, &until, &finished, turn, heir, company);
            acs_group_barrier();
        }
#else
            if (shared.release)
                acs_release(&e, &shared, &record, task, polls);
            acs_choose(&e, &shared, &until, &finished, turn, heir, company);
            if (shared.next == ACS_CLOSES)
                acs_begin_round(region, e.block, e.tasks, which, &shared);
        }
        acs_group_barrier();
#endif
        entry = shared.next;
        staged = staged && acs_task_of(entry) == acs_task_of(heir);
    }
#if !ACS_STEADY
    if (entry == ACS_CLOSES)   /* in its last turn */
        acs_begin_round(region, e.block, e.tasks, which, &shared);
#endif
    if (lane == 0 && whole) {
#if ACS_SPAWNS
        if (!shared.idle)
            acs_add(e.block + ACS_B_BUSY, 0u - 1u);
#endif
        if (finished)
            acs_sub_release_acquire(e.block + ACS_B_UNFINISHED, finished);
        acs_fence();
        if (acs_add(e.block + ACS_B_GONE, 1u) + 1u == groups) {
            acs_store(e.block + ACS_B_GONE, 0u); /* for the next launch */
#if ACS_TIMED
            acs_store(e.block + ACS_B_NOTED, ++notes[ACS_N_LAUNCHES]);
            acs_store(e.block + ACS_B_NOTES, acs_load(notes + ACS_N_USED));
#endif
            acs_fence();
            acs_store(region + ACS_H_USED + which,
                      max(acs_load(e.block + ACS_B_HEAD), acs_load(e.block + ACS_B_TAIL)));
        }
    }
}

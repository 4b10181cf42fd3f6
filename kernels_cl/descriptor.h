/* The epoch in memory, version 3: one region of uint words, written by the host in one upload.

   header | records, 32 words a task | successors | argument blobs and shapes | initial state | loop |
   block 0 | block 1

   A **reference** names tiles of a task in one word: task + 1 in the low 20 bits, and in the high 12
   a tile (queue entries) or the last tile (successors, heirs). 0 is no task. An heir waits for one task alone.

   The two blocks hold everything that changes while an epoch runs. A run uses one and cleans the other,
   so that a recorded epoch runs again without an upload. A loop runs many rounds in one block.
   acs_cl/scheduler/layout.py writes these words; its names are the same. */

#define ACS_VERSION 0xAC500003u

/* header */
#define ACS_H_VERSION 0
#define ACS_H_TASKS 1
#define ACS_H_RECORDS 2        /* where, in words */
#define ACS_H_SUCCESSORS 3
#define ACS_H_N_SUCCESSORS 4
#define ACS_H_BLOCKS 5         /* where block 0 is */
#define ACS_H_BLOCK_WORDS 6
#define ACS_H_QUEUE_MASK 7     /* capacity of the ready queue, a power of two, minus one */
#define ACS_H_INITIAL 8        /* where the entries that are ready at first are */
#define ACS_H_N_INITIAL 9
#define ACS_H_COUNTS 10        /* where the initial upstream counts are */
#define ACS_H_WINDOW 11        /* slots of the window, 0: as many as tasks; the word behind it is free */
#define ACS_H_WORDS 13         /* of the whole region */
#define ACS_H_LOOP 14          /* where the words of a loop are, 0: it runs once */
#define ACS_H_CHECK 15         /* what acs_is_whole makes of the words before */
#define ACS_H_USED 24          /* tickets that the last run in each block gave out; changes */
#define ACS_HEADER_WORDS 32

/* Whether the header has this version and is as the host wrote it. A group that finds otherwise touches
   nothing: there is no place left to say so, and the host sees that nothing was finished. It is a call,
   since it is rare and PoCL's compiler takes seconds for it in each work-item. */
__attribute__((noinline)) bool acs_is_whole(const __global uint *region) {
    uint check = 0;
    for (uint i = 0; i < ACS_H_CHECK; ++i)
        check = (check ^ region[i]) * 16777619u;
    return region[0] == ACS_VERSION && check == region[ACS_H_CHECK];
}

/* record of a task */
#define ACS_R_BODY 0           /* body in the low 8 bits, flags above, words of arguments above 16 */
#define ACS_R_HEIR 1           /* the successor that waits for this task alone, as a reference */
#define ACS_R_SUCCESSORS 2     /* where its other successors begin in the list */
#define ACS_R_N_SUCCESSORS 3
#define ACS_R_TILES 4          /* how many in the low half, in the high half the first of them */
#define ACS_R_ITEMS 5          /* work-items of the whole launch */
#define ACS_R_TILE_ITEMS 6     /* work-items of a tile: the tile target */
#define ACS_R_ARGS 7           /* where its arguments are, 0: in this record */
#define ACS_R_SHAPE 8          /* where its sizes are, 0: one dimension from zero */
#define ACS_R_LOCAL 9          /* work-items of a group as the kernel sees it */
#define ACS_R_WHEN 10          /* address of the predicate, two words, 0: none */
#define ACS_R_COUNT 12         /* address of the count, two words, 0: none */
#define ACS_R_UPTO 14          /* the largest count allowed; of a child how many entries it has */
#define ACS_R_PARENT 15        /* of a child its root; of a task that spawns, what to do with children */
#define ACS_R_SPREAD 15        /* of a band that is no run of tiles: how many are in a row, in the low
                                  half, and in the high half how far the next ones begin behind these */
#define ACS_R_INLINE 16        /* arguments that fit */
#define ACS_RECORD_WORDS 32

#define ACS_F_FUSED 0x100u     /* one tile, nobody but its one-tile heir waits: run that at once */
#define ACS_F_GANG 0x200u      /* its finishers run its heir's tiles: they wait for the last of them */
#define ACS_F_PLAIN 0x400u     /* one dimension from zero, no decisions, arguments in the record, tiles in a row */
#define ACS_F_SPAWNS 0x800u    /* it may have children: left[t] counts their tiles too, in all its bits */
#define ACS_F_BAND 0x1000u     /* its tiles are a part of the launch, or none of it */
#define ACS_F_ALIKE 0x2000u    /* fused with an heir that differs in its arguments and its own heir alone */

#define acs_tiles_of(word) ((word) & 0xFFFFu)
#define acs_first_tile_of(word) ((word) >> 16)

/* What to do with children: a controller in the low bits, then the logarithm of how many tiles its
   launch may have unfinished with them. Above is how many items a child has at least; 0: as was
   learned. */
#define ACS_ALWAYS 1u          /* they become tasks */
#define ACS_HUNGRY 2u          /* they do if a group looks for work */
#define ACS_CCQS 3u            /* they do if that seems quicker, by what earlier ones took */
#define acs_controller_of(word) ((word) & 7u)
#define acs_at_most_of(word) (1u << ((word) >> 3 & 31u))
#define acs_threshold_of(word) ((word) >> 8)

/* A child is a record in a pool that belongs to the scheduler, not to the region: the first 16 words of
   a record, then an entry of 16 words for items with the same arguments. As a reference it is the
   number of its unit behind the tasks. The pool is for one launch of a scheduler at a time. In front of
   it is what was learned of each body, which lasts. */
#define ACS_T_PASS 0           /* ticks of an item that is run by one lane */
#define ACS_T_TILE 1           /* of a tile of a child */
#define ACS_T_MAKING 2         /* of making a child */
#define ACS_T_LEAST 3          /* items that a child has at least, 0: nothing is known */
#define ACS_T_WORDS 4

/* The notes of a timed scheduler, in memory of its own: a header, then an entry for each tile that a
   group ran. Groups take entries in pieces. Entries that they leave empty have no reference. */
#define ACS_N_USED 0           /* entries that groups took */
#define ACS_N_LAUNCHES 1       /* launches that have ended */
#define ACS_N_DROPPED 2        /* tiles for which there was no entry left */
#define ACS_N_ORDER 3          /* counts, where there is no clock */
#define ACS_N_ENTRIES 4        /* how many there are */
#define ACS_NOTES_HEADER 32
#define ACS_NOTE_WORDS 8       /* task and tile as a reference, group, launch, root of a child plus one,
                                  and two words each for when it began and when it ended */
#define ACS_NOTES_FIRST 4u     /* entries that a group takes at first in a launch, and then */
#define ACS_NOTES_PIECE 32u

/* why a group runs items itself */
#define ACS_ALL_BUSY 0u        /* all groups have work */
#define ACS_NO_ROOM 1u         /* the pool or the ring is full */
#define ACS_TOO_MANY 2u        /* the launch has as many tiles unfinished as it may have */
#define ACS_SLOWER 3u          /* a child would take longer */

/* sizes of a launch of several dimensions, or with an offset */
#define ACS_S_GLOBAL 0
#define ACS_S_LOCAL 3
#define ACS_S_OFFSET 6
#define ACS_S_DIMENSIONS 9

/* loop */
#define ACS_L_FLAG 0           /* address of the word that decides, two words */
#define ACS_L_AT_MOST 2        /* rounds */
#define ACS_L_N_RESETS 3
#define ACS_L_RESETS 4         /* where in a block's state, and what is there when a round begins */

/* block: words that many write lie 128 bytes apart */
#define ACS_B_HEAD 0           /* tickets given to takers */
#define ACS_B_TAIL 32          /* tickets given to publishers */
#define ACS_B_UNFINISHED 64    /* tasks, and one more while a loop is not over */
#define ACS_B_ROUND 65         /* rounds that have begun */
#define ACS_B_OPENED 66        /* somebody has looked whether there is a first round */
#define ACS_B_GONE 96          /* groups of this launch that left */
#define ACS_B_UNITS 97         /* units of the pool that were given out, in this round */
#define ACS_B_ASKED 98         /* slots of the ring that children asked for */
#define ACS_B_SPAWNED 99       /* items of children that became tasks */
#define ACS_B_KEPT 100         /* items of children that their group ran itself; four words, by reason */
#define ACS_B_BUSY 104         /* groups of this launch that have work, where tasks spawn */
#define ACS_B_NOTED 105        /* launches that the notes tell of, this one with them; of a timed scheduler */
#define ACS_B_NOTES 106        /* entries of the notes that are taken, at its end */
#define ACS_B_FAULT 128        /* code, task, value of the first fault */
#define ACS_B_INSERTING 160    /* window: requests to insert, next task to insert, tasks that have ended */
#define ACS_B_STATE 192        /* count[32 * rows], left[32 * rows], queue[capacity] */

/* Many groups count down neighbouring tasks, and poll neighbouring slots, at the same time, so such
   words lie apart. Task t is in row t / 32, rows = tasks / 32 rounded up. The slots of a queue of 2^b
   words lie likewise. */
#define acs_place_of_task(rows, task) (((task) & 31u) * (rows) + ((task) >> 5))
#define acs_place_of_slot(mask, ticket) ((((ticket) & 31u) * (((mask) + 1u) >> 5)) + (((ticket) & (mask)) >> 5))

#define ACS_TASK_BITS 20
#define ACS_TASK_MASK 0xFFFFFu
#define ACS_NONE 0u            /* no task; an empty queue slot */
#define ACS_ABANDONED 0xFFFFFFFFu
#define ACS_CLOSES 0xFFFFFFFFu /* not an entry: the group has finished a round */
#define acs_task_of(reference) (((reference) & ACS_TASK_MASK) - 1u)
#define acs_tile_of(reference) ((reference) >> ACS_TASK_BITS)

/* faults */
#define ACS_BAD_HEADER 1u
#define ACS_BAD_RECORD 2u
#define ACS_BAD_SUCCESSOR 3u
#define ACS_BAD_COUNT 4u       /* a task was counted down below zero */
#define ACS_BAD_ENTRY 5u
#define ACS_ABOVE_UPTO 6u      /* a size read on the device is above its bound */
#define ACS_NOT_WHOLE_GROUPS 7u
#define acs_is_fatal(code) ((code) - 1u < ACS_BAD_ENTRY)
#define ACS_FAULTY 0xF0000000u /* in count[t] of a task whose size was refused, with the fault */
#define ACS_TOLD 14u           /* of which so many are told with their sizes, behind the first fault:
                                  how many there are, then task and size of each */

/* Work that creates work: `n` items of function(item, ...), run some time before this launch ends.

       #include <acs_spawn.h>

       void visit(uint item, global const int *to, global int *dist, uint first) {
           dist[to[first + item]] = 1;
       }
       kernel void expand(global const int *row, global const int *to, global int *dist) {
           const uint from = get_global_id(0), first = row[from];
           ACS_SPAWN(visit, row[from + 1] - first, to, dist, first);
       }

   A launch of the scheduler may run the items later, in any order, and by any group. Elsewhere this
   is a loop. So only launches behind this one may read what the items write, and other items may
   write it only with atomics. An item is the first argument of the function, a uint. At least one
   argument follows. Arguments are evaluated for each item: pass names and numbers.

   This file comes with acs_cl: `rt.build` replaces the #include by the line below. */

#define ACS_SPAWN(function, n, ...) for (uint acs_child = 0u, acs_children = (n); acs_child < acs_children; ++acs_child) function(acs_child, __VA_ARGS__)

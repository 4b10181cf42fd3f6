// Turns for threads of ours that work beside the program: those that build schedulers, and those of host tasks.
//
// A thread that wants the GIL asks for it after 5 ms, and gives it up whenever it reads a file. So beside a thread that
// launches all the time each file costs it 5 ms, and to import a dozen modules takes a second. Launches are so short
// that Python never takes the GIL from one.
//
// So a thread that launches gives turns: it goes without the GIL for a slice, and then has it as long for itself.
// Processor time tells who needs them. A thread that had some between two turns works without the GIL. One that has
// none during a turn waits for something else; the turn ends early then, and the next one comes later.

#pragma once

#include <atomic>

namespace acs_cl::turns {

inline std::atomic<int> wanted = 0;  // threads that work beside the program

// Whether the calling thread works beside the program, from now on. Returns whether it did. Called with the GIL.
bool want(bool does);

// Gives the others a turn if one is due. Called with the GIL, which is released, and without a lock of ours.
void give();

// Forgets threads of before a fork, which are not in this process.
void forget();

}  // namespace acs_cl::turns

// Turns for threads of ours that work beside the program, such as the one that builds schedulers.
//
// A thread that wants the GIL asks for it after 5 ms, and gives it up whenever it reads a file. So beside a thread that
// launches all the time each file costs it 5 ms, and to import a dozen modules takes a second. Other programs' threads
// get along, since few hold the GIL that long. Launches do: they are short, and there are many.
//
// So a thread that launches gives turns: it goes without the GIL for a slice, and then has as long for itself. A thread
// that waits for something else needs no turn. Its processor time tells: a turn that is not used ends early, and the
// next one comes later.

#pragma once

#include <atomic>

namespace acs_cl::turns {

inline std::atomic<int> wanted = 0;  // threads that work beside the program

// Whether the calling thread works beside the program, from now on. Called with the GIL.
void want(bool does);

// Gives the others a turn if one is due. Called with the GIL, which is released, and without a lock of ours.
void give();

// Forgets threads of before a fork, which are not in this process.
void forget();

}  // namespace acs_cl::turns

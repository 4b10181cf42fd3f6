// The base of what is never copied or moved, since it holds something or others point to it.

#pragma once

namespace acs_cl {

struct Single {
    Single() = default;
    Single(const Single &) = delete;
    Single &operator=(const Single &) = delete;
};

}  // namespace acs_cl

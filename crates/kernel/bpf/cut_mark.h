// The classifier marks, for programs behind it at the same hook, a packet whose flow is cut: by a number in the
// packet's control block, which the kernel writes over when the packet leaves the hook.
#pragma once

#define CUT_MARK 0x50757267

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors
// libfuse's low-level API for Swift. A system library target has no C settings, so the API version is
// chosen here; 312 is the first in which every call that we need is a function and not a macro.
#define FUSE_USE_VERSION 312
#include <fuse3/fuse_lowlevel.h>

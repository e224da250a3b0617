// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors
#include "CTagLib.h"

#define LIBRARY "libtag_c.so.0"
#define NEWER "libtag_c.so.2"
#define TITLE "TagLib"
#define ADVICE "install TagLib's C library (on Debian 12 the package libtagc0, later libtag-c2)"
#define LOAD ctaglib_load
#define FUNCTIONS "../CTagLib/Functions.h"
#include "../CLinux/LoadedLibrary.h"

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors
#include "CSessionBus.h"

#define LIBRARY "libsystemd.so.0"
#define TITLE "libsystemd"
#define ADVICE "install libsystemd (on Debian the package libsystemd0)"
#define LOAD csessionbus_load
#define FUNCTIONS "../CSessionBus/Functions.h"
#include "../CLinux/LoadedLibrary.h"

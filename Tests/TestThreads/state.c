// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

#define _GNU_SOURCE
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

// What this machine notes of stores, their volumes for example, is not for tests: they, and the programs that
// they start, have a place of their own. It is set before there are threads, and removed at the end.

static char place[] = "/tmp/insula-test-state-XXXXXX";
static pid_t maker;

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status, (void)type, (void)walk;
    return remove(path);
}

static void remove_place(void)
{
    if (getpid() == maker)
        nftw(place, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

__attribute__((constructor)) static void make_place(void)
{
    if (!mkdtemp(place) || setenv("INSULA_MACHINE_STATE", place, 1)) {
        perror("can't make a place for what is noted of stores");
        abort();
    }
    maker = getpid();
    atexit(remove_place);
}

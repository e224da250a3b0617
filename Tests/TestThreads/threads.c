// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "test_threads.h"

// Runs the tests on half as many threads again as there are processors.
//
// Swift's own pool has a thread for each processor, for code that never blocks. A test waits for programs
// that it has started, so a third of the processors' time was idle. INSULA_TEST_THREADS is another number.

struct job {
    void *task;
    struct job *next;
};

extern void (*swift_task_enqueueGlobal_hook)(void *task, void *original) __attribute__((swiftcall));
extern void swift_job_run(void *task, void *executor, void *table) __attribute__((swiftcall));

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t has_job = PTHREAD_COND_INITIALIZER;
static pthread_once_t started = PTHREAD_ONCE_INIT;
static struct job *first, **last = &first;

static void *run_jobs(void *unused)
{
    (void)unused;
    for (;;) {
        pthread_mutex_lock(&lock);
        while (!first)
            pthread_cond_wait(&has_job, &lock);
        struct job *job = first;
        first = job->next;
        if (!first)
            last = &first;
        pthread_mutex_unlock(&lock);
        void *task = job->task;
        free(job);
        // No executor of one's own: the generic one.
        swift_job_run(task, NULL, NULL);
    }
    return NULL;
}

static void start(void)
{
    const char *text = getenv("INSULA_TEST_THREADS");
    long count = text ? atol(text) : (sysconf(_SC_NPROCESSORS_ONLN) * 3 + 1) / 2;
    for (long made = 0; made < (count > 1 ? count : 1); made++) {
        pthread_t thread;
        int error = pthread_create(&thread, NULL, run_jobs, NULL);
        if (error) {
            fprintf(stderr, "can't start a thread for tests: error %d\n", error);
            abort();
        }
        pthread_detach(thread);
    }
}

static void enqueue(void *task, void *original) __attribute__((swiftcall));
static void enqueue(void *task, void *original)
{
    (void)original;
    struct job *job = malloc(sizeof *job);
    if (!job)
        abort();
    job->task = task;
    job->next = NULL;
    pthread_once(&started, start);
    pthread_mutex_lock(&lock);
    *last = job;
    last = &job->next;
    pthread_cond_signal(&has_job);
    pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void install(void)
{
    swift_task_enqueueGlobal_hook = enqueue;
}

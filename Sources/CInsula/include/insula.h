// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors
//
// What a program can ask Insula while it runs as an app: who it is, where its directories are, what its user
// has granted to it, and whether it may have more. Link with -linsula ('pkg-config --cflags --libs insula');
// the library depends on the C library alone.
//
//   insula *app = insula_open();
//   if (!app) { ... it does not run as an app (errno is ENOENT), or Insula can't be reached ... }
//   char *documents = insula_path(app, "documents");
//   if (!documents) fprintf(stderr, "%s\n", insula_error(app));
//   free(documents);
//   insula_close(app);
//
// Functions that fail return NULL or -1, set errno, and leave a sentence for insula_error(). They wait for
// the answer, but for no disk; a signal does not interrupt them. A handle is for one thread at a time; each
// thread may have its own. When the daemon is replaced by another one, the question is asked again.
#ifndef INSULA_H
#define INSULA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define INSULA_VERSION 1

// A connection of this app to Insula.
typedef struct insula insula;

// Connects through the socket that INSULA_SOCKET names, or /run/insula/app.sock. NULL with ENOENT: this is
// no app that Insula runs.
insula *insula_open(void);

// Ends the connection, and frees what insula_info() has returned. NULL is fine.
void insula_close(insula *app);

// Why the last call on this handle has failed, in English; empty if it has not. Valid until the next call.
const char *insula_error(const insula *app);

// This app. All strings are UTF-8; paths are absolute.
typedef struct insula_information {
  const char *identifier, *name, *version, *build, *team;
  // Where the whole tree is, the bundle of the app, and what the app has as its home.
  const char *root, *bundle, *home;
  // The home of the user for whom it runs, of which the app sees only what it may use.
  const char *user_home;
  // Groups and iCloud containers to which the app is entitled, each list ended by NULL.
  const char *const *groups, *const *clouds;
  uint32_t user;
} insula_information;

// What Insula knows about this app; valid until insula_close().
const insula_information *insula_info(insula *app);

// The absolute path of one of the app's directories: "documents", "inbox", "library", "caches",
// "application-support", "preferences", "tmp", "home", "bundle", "group:GROUP", "icloud" or
// "icloud:CONTAINER". To be freed with free(). NULL with EPERM: the app is not entitled to it.
char *insula_path(insula *app, const char *place);

// Something that the user has granted to the app.
typedef struct insula_grant {
  char *path;
  int is_writable;
  int is_directory;
} insula_grant;

// All that is granted now; what is granted may be missing at the moment. If `version` is not NULL it gets a
// text, for free(), by which insula_await_grants() knows this state.
int insula_grants(insula *app, insula_grant **grants, size_t *count, char **version);

void insula_free_grants(insula_grant *grants, size_t count);

// Waits until the grants are others than those of `version`, and returns 0 then; ask again what they are.
// To stop waiting, end the process, or shut the descriptor down from another thread.
int insula_await_grants(insula *app, const char *version);

// Waits until the user opens files with this app, and gives their absolute paths; none if the user has opened
// the app itself. An app that waits is told, and not started once more, and so is one that waits again within
// five seconds. What the app was started with are its arguments, and not told here.
int insula_await_opened(insula *app, char ***paths, size_t *count);

void insula_free_opened(char **paths, size_t count);

// What a user has said about an app and what is private. An administrator may have restricted it for all.
typedef enum insula_consent {
  insula_not_determined,
  insula_restricted,
  insula_denied,
  insula_authorized,
} insula_consent;

// What was decided about a service: "media-library", "photos", "photos-add", "contacts", "calendars",
// "reminders", and for apps whose users choose files for them "desktop", "documents", "downloads",
// "removable-volumes" and "network-volumes"; for apps whose entitlements reach their places those too, and
// "app-data". -1 with EINVAL: the app can't ask for it.
int insula_consent_status(insula *app, const char *service);

// Asks the user, if nothing was decided yet, and waits for the answer, which it returns. -1 with EPERM:
// nobody is there to ask, and nothing was decided.
int insula_request_consent(insula *app, const char *service);

// The same without waiting: `done` is called on a thread of its own, with the state, or with -1, an error and
// a sentence. -1 if there can't be such a thread; then it is not called.
typedef void insula_consent_callback(void *context, int state, int error, const char *message);
int insula_request_consent_later(const char *service, insula_consent_callback *done, void *context);

// What a user is to choose.
typedef enum insula_panel { insula_panel_file, insula_panel_folder, insula_panel_save } insula_panel;

// Has the user choose a file or folder among all of theirs, and returns its absolute path, for free(): from
// then on it is granted to the app. `name` is what a file to be saved is called at first; `types` are uniform
// type identifiers, or extensions with a dot, separated by commas; either may be NULL. NULL with ECANCELED:
// nothing was chosen.
char *insula_open_panel(insula *app, insula_panel kind, const char *name, const char *types);

// Some of what is private to the user and no file: "songs", "contacts", "events" or "reminders", as the text
// of a JSON array, for free(). The user is asked first if they have decided nothing yet. `after` is NULL for
// the beginning; `next` gets where it goes on, for free(), or NULL at the end. NULL with EPERM: the app may
// not be told, or nobody is there to ask; with ESTALE: it does not go on there any more, so begin again.
char *insula_items(insula *app, const char *kind, const char *after, char **next);

// Puts a copy of a photo or video, which lies below what the app has as its home, into the user's photo
// library, of which the app sees nothing. The user is asked first if they have not decided yet about
// "photos-add". -1 with EPERM: the app may not, or nobody is there to ask; with EINVAL: the file lies
// elsewhere, or is no photo.
int insula_add_photo(insula *app, const char *path);

// The descriptor of the connection, to be polled and nothing else.
int insula_descriptor(const insula *app);

// Sends one request, a JSON object without a newline, and returns the reply, for free(): an object in which
// "ok" says whether it was done, and "message" why not.
char *insula_call(insula *app, const char *request);

#ifdef __cplusplus
}
#endif

#endif

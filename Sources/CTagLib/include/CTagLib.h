// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors
// What is called of TagLib, which reads the tags of music. The library is loaded when somebody asks for it:
// only the process that reads songs for apps does, and the program runs where it is missing. So nothing of it
// is needed to build, and what is called is declared here, as its header tag_c.h has it.
#ifndef CTAGLIB_H
#define CTAGLIB_H

typedef struct { int dummy; } TagLib_File;
typedef struct { int dummy; } TagLib_Tag;
typedef struct { int dummy; } TagLib_AudioProperties;

// Loads the library unless that is done; NULL, or why it can't be loaded. Nothing else may be called before.
const char *_Nullable ctaglib_load(void);

#define FUNCTION(result, name, parameters, arguments) result name parameters;
#include "../Functions.h"
#undef FUNCTION

#endif

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors
// What is called of sd-bus, the D-Bus library of systemd. The library is loaded when somebody asks for it:
// only the agent does, and the program runs where it is missing. So nothing of it is needed to build, and
// what is called is declared here, as its manual has it.
#ifndef CSESSIONBUS_H
#define CSESSIONBUS_H

#include <stddef.h>
#include <stdint.h>

typedef struct sd_bus sd_bus;
typedef struct sd_bus_message sd_bus_message;
typedef struct sd_bus_slot sd_bus_slot;

typedef struct {
  const char *_Nullable name;
  const char *_Nullable message;
  int _need_free;
} sd_bus_error;

typedef int (*sd_bus_message_handler_t)(sd_bus_message *_Nullable message, void *_Nullable userdata,
                                        sd_bus_error *_Nullable ret_error);

// Loads the library unless that is done; NULL, or why it can't be loaded. Nothing else may be called before.
const char *_Nullable csessionbus_load(void);

#define FUNCTION(result, name, parameters, arguments) result name parameters;
#include "../Functions.h"
#undef FUNCTION

#endif

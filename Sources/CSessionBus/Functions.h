// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors
// The functions of sd-bus that are called. For each FUNCTION(result, name, parameters, arguments), Library.c
// defines one that calls the library's. It has no guards, because it is read several times.

FUNCTION(int, sd_bus_open_user, (sd_bus *_Nullable *_Nonnull a), (a))
FUNCTION(sd_bus *_Nullable, sd_bus_flush_close_unref, (sd_bus *_Nullable a), (a))
FUNCTION(int, sd_bus_is_open, (sd_bus *_Nonnull a), (a))
FUNCTION(int, sd_bus_get_fd, (sd_bus *_Nonnull a), (a))
FUNCTION(int, sd_bus_get_events, (sd_bus *_Nonnull a), (a))
FUNCTION(int, sd_bus_get_timeout, (sd_bus *_Nonnull a, uint64_t *_Nonnull b), (a, b))
FUNCTION(int, sd_bus_get_unique_name, (sd_bus *_Nonnull a, const char *_Nullable *_Nonnull b), (a, b))
FUNCTION(int, sd_bus_process, (sd_bus *_Nonnull a, sd_bus_message *_Nullable *_Nullable b), (a, b))
FUNCTION(int, sd_bus_add_match,
         (sd_bus *_Nonnull a, sd_bus_slot *_Nullable *_Nullable b, const char *_Nonnull c,
          sd_bus_message_handler_t _Nonnull d, void *_Nullable e),
         (a, b, c, d, e))
FUNCTION(int, sd_bus_call_async,
         (sd_bus *_Nonnull a, sd_bus_slot *_Nullable *_Nullable b, sd_bus_message *_Nonnull c,
          sd_bus_message_handler_t _Nonnull d, void *_Nullable e, uint64_t f),
         (a, b, c, d, e, f))
FUNCTION(sd_bus_slot *_Nullable, sd_bus_slot_unref, (sd_bus_slot *_Nullable a), (a))
FUNCTION(int, sd_bus_message_new_method_call,
         (sd_bus *_Nonnull a, sd_bus_message *_Nullable *_Nonnull b, const char *_Nonnull c,
          const char *_Nonnull d, const char *_Nonnull e, const char *_Nonnull f),
         (a, b, c, d, e, f))
FUNCTION(sd_bus_message *_Nullable, sd_bus_message_ref, (sd_bus_message *_Nullable a), (a))
FUNCTION(sd_bus_message *_Nullable, sd_bus_message_unref, (sd_bus_message *_Nullable a), (a))
FUNCTION(int, sd_bus_message_append_basic, (sd_bus_message *_Nonnull a, char b, const void *_Nonnull c),
         (a, b, c))
FUNCTION(int, sd_bus_message_append_array,
         (sd_bus_message *_Nonnull a, char b, const void *_Nullable c, size_t d), (a, b, c, d))
FUNCTION(int, sd_bus_message_open_container, (sd_bus_message *_Nonnull a, char b, const char *_Nonnull c),
         (a, b, c))
FUNCTION(int, sd_bus_message_close_container, (sd_bus_message *_Nonnull a), (a))
FUNCTION(int, sd_bus_message_read_basic, (sd_bus_message *_Nonnull a, char b, void *_Nonnull c), (a, b, c))
FUNCTION(int, sd_bus_message_enter_container, (sd_bus_message *_Nonnull a, char b, const char *_Nonnull c),
         (a, b, c))
FUNCTION(int, sd_bus_message_exit_container, (sd_bus_message *_Nonnull a), (a))
FUNCTION(int, sd_bus_message_peek_type,
         (sd_bus_message *_Nonnull a, char *_Nullable b, const char *_Nullable *_Nullable c), (a, b, c))
FUNCTION(int, sd_bus_message_skip, (sd_bus_message *_Nonnull a, const char *_Nullable b), (a, b))
FUNCTION(int, sd_bus_message_is_method_error, (sd_bus_message *_Nonnull a, const char *_Nullable b), (a, b))
FUNCTION(const sd_bus_error *_Nullable, sd_bus_message_get_error, (sd_bus_message *_Nonnull a), (a))
FUNCTION(const char *_Nullable, sd_bus_message_get_path, (sd_bus_message *_Nonnull a), (a))
FUNCTION(const char *_Nullable, sd_bus_message_get_sender, (sd_bus_message *_Nonnull a), (a))

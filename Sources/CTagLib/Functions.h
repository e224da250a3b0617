// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors
// The functions of TagLib that are called. For each FUNCTION(result, name, parameters, arguments), Library.c
// defines one that calls the library's. It has no guards, because it is read several times.

FUNCTION(TagLib_File *_Nullable, taglib_file_new, (const char *_Nonnull path), (path))
FUNCTION(void, taglib_file_free, (TagLib_File *_Nonnull file), (file))
FUNCTION(int, taglib_file_is_valid, (const TagLib_File *_Nonnull file), (file))
FUNCTION(TagLib_Tag *_Nullable, taglib_file_tag, (const TagLib_File *_Nonnull file), (file))
FUNCTION(const TagLib_AudioProperties *_Nullable, taglib_file_audioproperties,
         (const TagLib_File *_Nonnull file), (file))
FUNCTION(char *_Nullable, taglib_tag_title, (const TagLib_Tag *_Nonnull tag), (tag))
FUNCTION(char *_Nullable, taglib_tag_artist, (const TagLib_Tag *_Nonnull tag), (tag))
FUNCTION(char *_Nullable, taglib_tag_album, (const TagLib_Tag *_Nonnull tag), (tag))
FUNCTION(char *_Nullable, taglib_tag_genre, (const TagLib_Tag *_Nonnull tag), (tag))
FUNCTION(unsigned, taglib_tag_year, (const TagLib_Tag *_Nonnull tag), (tag))
FUNCTION(unsigned, taglib_tag_track, (const TagLib_Tag *_Nonnull tag), (tag))
FUNCTION(void, taglib_tag_free_strings, (void), ())
FUNCTION(int, taglib_audioproperties_length,
         (const TagLib_AudioProperties *_Nonnull properties), (properties))

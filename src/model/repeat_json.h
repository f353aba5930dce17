/* The object "repeat" of a job file and of the API, as words for a record. Every key that it does not have, and every value that a
 * key cannot have, is named at the beginning of the sentence. Not linked into gpumgr-node, which reads the words. */
#pragma once

#include "base/json_tree.h"
#include "model/repeat.h"

int repeat_json_words(const struct json_tree *v, struct buf *ret, struct error *e) MUST_CHECK;
